// Package tui is gpuscope's terminal program. It drives a session.Session (Run) or shows a recorded trace
// (ShowTrace).
//
// App is the one Bubble Tea model: it takes messages in, finds what a key means and draws the frame. The
// parts that it embeds know and do the rest, each in its file: notes, stage (the views), inputs, selection,
// pilot (the commands to the session), restarts, overlays, exporter, history and lab.
//
// Below it are tui/command (the table of commands, from which keys, palette, help and plain mode are made),
// tui/view (the screens), tui/plain (the program without a screen), tui/tty (the terminal) and tui/widget
// (what draws, and the jobs). What the screens show is computed in trace/analyze, the same for the command
// line.
//
// App.Update neither computes nor waits, and View only places what is ready. Tables, orders, filters, details
// and summaries are made by jobs, which a newer request cancels; commands to the session run in goroutines
// that the runner owns, and events come back in batches.
//
// Only this file, keys.go, pacing.go, suspend.go and run.go know Bubble Tea, and only tui/widget/theme.go Lip
// Gloss.
package tui

import (
	"fmt"
	"math"
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/tui/command"
	"gpuscope/tui/tty"
	"gpuscope/tui/view"
	"gpuscope/tui/widget"
)

// App is the program: it takes messages in, finds what a key means and draws the frame. What it knows and
// does is in the parts that it embeds. All of it belongs to the event loop.
type App struct {
	opts   Options
	theme  *widget.Theme
	glyphs widget.Glyphs
	runner *widget.Runner
	w, h   int

	*notes     // what is said to the person
	*model     // the session, or the trace, and where it stands
	*stage     // the views, and which of them has the screen
	*inputs    // what is being typed
	*selection // the steps that tables show, and the baseline
	*pilot     // sends commands to the session
	*restarts  // starts a crashed engine again
	*overlays  // a text over the view
	*exporter  // writes files, and the clipboard
	*history   // undo
	lab        *lab

	jobs  *widget.Jobs              // what computes what is shown
	deeds map[string]command.Action // what commands do, by their names
	held  []widget.Key              // pressed, and to be done once what they are about is there

	lent    atomic.Int64 // until when, in ns, an interrupt is for who has the terminal
	shell   *tty.JobControl
	mouse   bool
	clicked clicked
	meter   widget.Meter
	leaving bool // the program was told to end
	cmds    []tea.Cmd
}

// Messages of the runner's goroutines to the event loop.
type (
	openedMsg struct {
		session session.Session
		trace   *trace.Trace
		index   *analyze.Index // of the trace
		err     error
	}
	eventsMsg []session.Event
	endedMsg  struct{ reason error } // there will be no more events
	doneMsg   struct {
		id    int
		reply session.Reply
		err   error
	}
	noteMsg struct { // something that took its time is done
		kind string // as later was told
		what string
		text string
		err  error
	}
	fadeMsg struct{ id int }
	logMsg  struct{}
	// backgroundMsg is the terminal's word on its background, where it came after the first frame.
	backgroundMsg struct{ dark bool }
	leaveMsg      struct{}
)

func newApp(opts Options) (*App, error) {
	t, err := widget.NewTheme(opts.Theme, opts.Color, opts.output(), opts.isDark)
	if err != nil {
		return nil, err
	}
	g, err := widget.NewGlyphs(opts.Glyphs)
	if err != nil {
		return nil, err
	}
	a := &App{
		opts: opts, theme: t, glyphs: g, w: opts.Width, h: opts.Height, mouse: !opts.NoMouse,
		shell: tty.NewJobControl(),
	}
	if a.w == 0 || a.h == 0 {
		a.w, a.h = widget.MainWidth, mainHeight
	}
	a.assemble()
	a.deeds = map[string]command.Action{}
	for _, act := range a.actions() {
		a.deeds[act.Name] = act
	}
	for i := range view.Views {
		a.views = append(a.views, view.Views[i].New(hosting{a}, a.log))
		if view.Views[i].First {
			a.current = i
		}
	}
	return a, nil
}

// assemble makes the parts of the program.
func (a *App) assemble() {
	a.notes = &notes{log: a.opts.Log, after: func(d time.Duration, m any) {
		a.cmds = append(a.cmds, tea.Tick(d, func(time.Time) tea.Msg { return m }))
	}}
	if a.notes.log == nil {
		a.notes.log = NewLog()
	}
	a.jobs = widget.NewJobs(a.fail, a.mended)
	a.notes.work = a.jobs
	a.model = newModel(a.jobs)
	a.stage = newStage()
	a.inputs = &inputs{notes: a.notes}
	a.overlays = &overlays{notes: a.notes, inputs: a.inputs, work: a.jobs}
	a.stage.onLeave = func() { a.overTask.Drop(a.jobs) }
	a.selection = &selection{model: a.model, notes: a.notes, inputs: a.inputs, stage: a.stage}
	a.pilot = &pilot{selection: a.selection, opts: &a.opts}
	a.restarts = &restarts{pilot: a.pilot}
	a.lab = &lab{pilot: a.pilot, overlays: a.overlays, handOver: a.handOver}
	a.exporter = &exporter{
		selection: a.selection, texts: a.overlays, opts: &a.opts, width: func() int { return a.w },
	}
	a.history = &history{selection: a.selection}
}

// runs gives the app who runs its goroutines, before the first message.
func (a *App) runs(r *widget.Runner) { a.runner, a.jobs.Runner = r, r }

// Init starts nothing: Run opens the session beside the first frame.
func (a *App) Init() tea.Cmd { return nil }

// Update takes one message in.
func (a *App) Update(m tea.Msg) (_ tea.Model, cmd tea.Cmd) {
	defer func() {
		if v := recover(); v != nil {
			a.runner.Crash(&Panic{Value: v, Stack: debug.Stack()})
			cmd = tea.Quit
		}
	}()
	defer a.meter.Updated(widget.Now())
	switch m := m.(type) {
	case tea.WindowSizeMsg:
		a.w, a.h = m.Width, m.Height
	case tea.KeyMsg:
		for _, k := range keysOf(m) {
			if k.Urgent() {
				a.held = nil
				a.strike(k)
			} else {
				a.held = append(a.held, k)
			}
		}
	case tea.MouseMsg:
		a.asks()
		if p, ok := pointerOf(m); ok {
			a.answering(func() { a.point(p) })
		}
	case tty.SuspendMsg:
		a.suspend()
	case tty.RetakeMsg:
		a.leaveTerminal(a.shell.AwaitForeground)
	case resumedMsg:
		a.takeMouse()
	case widget.ReadyMsg:
		a.jobs.Ended(m)
	case widget.LateMsg:
		a.jobs.Ticking, a.jobs.Resting = false, false
	case openedMsg:
		a.opened(m)
	case eventsMsg:
		a.events(m)
	case endedMsg:
		a.ended(m.reason)
	case doneMsg:
		a.done(m)
	case noteMsg:
		if i := slices.Index(a.doing, m.what); i >= 0 {
			a.doing = slices.Delete(a.doing, i, i+1)
		}
		if m.err != nil {
			a.fail(m.kind, m.err)
		} else {
			a.mended(m.kind)
			a.say(m.text)
			a.noteHolds = func() bool { return a.failure == "" || a.failureOf != m.kind }
		}
	case fadeMsg:
		if m.id == a.noteID {
			a.unsay()
		}
	case backgroundMsg:
		if t, err := widget.NewTheme(a.opts.Theme, a.opts.Color, a.opts.output(),
			func() bool { return m.dark }); err == nil {
			a.theme = t
		}
	case changedMsg:
		if m.err != nil {
			a.fail(nil, m.err)
		} else {
			a.lab.changedText(m.kernel, m.text)
		}
	case editedMsg:
		a.takeMouse()
		a.lab.closedEditor(m)
	case leaveMsg:
		a.quit()
	}
	for len(a.held) > 0 && !a.awaited() {
		k := a.held[0]
		a.held = a.held[1:]
		if a.strike(k); len(a.held) > 0 {
			a.reload() // what the key leads to is on its way
		}
	}
	a.takeNews()
	a.reload()
	if a.noteHolds != nil && !a.noteHolds() {
		a.unsay()
	}
	if (a.jobs.Open > 0 || a.jobs.Resting) && !a.jobs.Ticking { // to say that something takes its time
		a.jobs.Ticking = true
		a.cmds = append(a.cmds, tea.Tick(a.jobs.Patience,
			func(time.Time) tea.Msg { return widget.LateMsg{} }))
	}
	switch len(a.cmds) {
	case 0:
	case 1:
		cmd = a.cmds[0]
	default:
		cmd = tea.Batch(a.cmds...)
	}
	a.cmds = a.cmds[:0:0]
	return a, cmd
}

// View draws the frame.
func (a *App) View() (frame string) {
	defer func() {
		if v := recover(); v != nil {
			a.runner.Crash(&Panic{Value: v, Stack: debug.Stack()})
			frame = ""
		}
	}()
	defer a.meter.Drawn(widget.Now())
	return a.frame()
}

// awaited says that the key before has led to something that is not there yet: a text over the view, or other
// rows. The next one is about that, and waits for it, unless it takes its time: no job keeps a key for long.
func (a *App) awaited() bool {
	if a.question != nil || a.dialog != nil || a.chord != nil {
		return false
	}
	rows := a.view().Pane()
	return a.overTask.Awaited(a.jobs) || rows != nil && rows.Job.Awaited(a.jobs)
}

// strike presses a key.
func (a *App) strike(k widget.Key) {
	if !k.Urgent() {
		a.disarm()
	}
	a.asks()
	a.answering(func() { a.press(k) })
}

// asks counts what a person does. It is about the newest that there is.
func (a *App) asks() {
	a.jobs.Asked++
	a.takeNews()
}

// answering does what a person asked for. What was said in answer to what they asked for before goes.
func (a *App) answering(f func()) {
	id, ofKey := a.noteID, a.noteOfKey
	a.changing(f)
	switch {
	case a.noteID != id:
		a.noteOfKey = true
	case ofKey:
		a.unsay()
	}
}

// press does what a key means here.
func (a *App) press(k widget.Key) {
	if a.question != nil || a.dialog != nil {
		if !k.Urgent() {
			a.typed(k)
			return
		}
	}
	if a.chord != nil && !k.Urgent() {
		a.struck(k)
		return
	}
	row := command.Find(k.Name, a.place())
	if row == nil {
		a.elsewhere(k.Name)
		return
	}
	a.do(row)
}

// elsewhere says of a key that means nothing in this view what it means in others.
func (a *App) elsewhere(key string) {
	var means []string
	for i := range command.Table {
		if r := &command.Table[i]; a.over == nil && r.Of != "" && slices.Contains(r.Keys, key) {
			means = append(means, r.Name+" in "+strings.Join(view.Offering(r.Name, (*view.Row).Label), ", "))
		}
	}
	if means != nil {
		a.remark(fmt.Sprintf("%s does nothing in %s: %s", widget.Sign(key), a.row().Name, strings.Join(means, "; ")))
	}
}

// do runs a command, or says why it cannot be done.
func (a *App) do(r *command.Row) {
	act := a.action(r)
	if why := a.why(r); why != "" {
		a.remark(r.Name + ": " + why)
		a.noteHolds = func() bool { return a.why(r) == why }
		if act.Miss != nil {
			act.Miss()
		}
		return
	}
	act.Run()
}

// place is the context that decides what a key does now: an overlay or a view.
func (a *App) place() command.Where {
	if a.over != nil {
		return overText
	}
	return a.inView(command.Moving, command.InViews, command.Anywhere)
}

// inView is the view, and which of its places keys are pressed in.
func (a *App) inView(in ...command.Place) command.Where {
	list := a.view().Actions()
	return command.Where{In: in, Offers: func(name string) bool { return view.ActionOf(list, name) != nil }}
}

func (a *App) quit() {
	a.leaving = true
	a.cmds = append(a.cmds, tea.Quit)
}

// takeMouse takes the mouse again: Bubble Tea gives the terminal away, and takes it back without.
func (a *App) takeMouse() {
	if a.mouse {
		a.cmds = append(a.cmds, tea.EnableMouseCellMotion)
	}
}

// lentOver is for how long, after the program that had the terminal has ended, a signal may be what ended it.
const lentOver = time.Second

// handOver gives the terminal to a program until it ends; what ended makes of that is a message.
func (a *App) handOver(cmd *exec.Cmd, ended func(error) any) {
	a.lent.Store(math.MaxInt64)
	a.shell.Holder.Store(tty.HeldByEditor)
	a.cmds = append(a.cmds, tea.ExecProcess(cmd, func(err error) tea.Msg {
		a.shell.Holder.Store(tty.HeldByScreen)
		a.lent.Store(time.Now().Add(lentOver).UnixNano())
		return ended(err)
	}))
}

func (a *App) toggleMouse() {
	a.mouse = !a.mouse
	if a.mouse {
		a.cmds = append(a.cmds, tea.EnableMouseCellMotion)
		a.say("mouse on: hold shift to select text")
	} else {
		a.cmds = append(a.cmds, tea.DisableMouse)
		a.say("mouse off")
	}
}

// cancel stops what is running; a second time within command.Again, with nothing between, it leaves.
func (a *App) cancel() {
	if a.armed() {
		a.quit()
		return
	}
	a.interrupted = widget.Now()
	switch {
	case a.question != nil || a.dialog != nil || a.chord != nil:
		a.closeInput()
		a.say(command.Keyed("{cancel} again to quit"))
	case a.stopLooking(), a.stop(), a.view().Stop():
		a.say(command.Keyed("cancelled; {cancel} again to quit"))
	default:
		a.remark(command.Keyed("nothing is running; {cancel} again to quit"))
	}
	a.noteHolds = a.armed
	a.fade(command.Again)
}
