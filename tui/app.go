// Package tui is gpuscope's terminal user interface. Run drives a live session.Session; ShowTrace displays
// a recorded trace.
//
// App is the only Bubble Tea model. It receives messages, decides what each key press means and draws the
// frame. App embeds one part for each concern, and each part has its own file: notes, stage (the views),
// inputs, selection, pilot (sends commands to the session), restarts, overlays, exporter and history.
//
// tui/command holds the table of commands, from which the keys, the palette, the help and plain mode are
// built. tui/view holds the screens, and tui/lab the kernel lab. tui/plain runs the program without a screen.
// tui/tty handles the terminal. tui/widget holds the drawing code and the background jobs. trace/analyze
// computes the numbers on the screens.
//
// App.Update and App.View never compute for long and never wait. Background jobs build tables, orders,
// filters, details and summaries; a newer request cancels an older job. Commands to the session run in
// goroutines of the runner. Events arrive in batches.
//
// Only this file, keys.go, pacing.go, suspend.go and run.go use Bubble Tea, and only tui/widget/theme.go
// uses Lip Gloss.
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
	"gpuscope/tui/lab"
	"gpuscope/tui/tty"
	"gpuscope/tui/view"
	"gpuscope/tui/view/all"
	"gpuscope/tui/widget"
)

// App is the Bubble Tea model of the program. Only the event loop may use an App.
type App struct {
	opts   Options
	theme  *widget.Theme
	glyphs widget.Glyphs
	runner *widget.Runner
	w, h   int

	*notes     // messages shown to the user
	*model     // the session or the trace, and the shown step
	*stage     // the views, and which view is on the screen
	*inputs    // the input that is being typed
	*selection // the steps that tables show, and the baseline
	*pilot     // sends commands to the session
	*restarts  // restarts a crashed engine
	*overlays  // a text shown over the view
	*exporter  // writes files and the clipboard
	*history   // undo
	lab        *lab.Lab

	jobs  *widget.Jobs              // jobs that compute what the screen shows
	deeds map[string]command.Action // implementations of the commands, by command name
	held  []widget.Key              // key presses whose rows or text are not ready yet

	lent    atomic.Int64 // until this Unix time in ns, a SIGINT is for the program that has the terminal
	shell   *tty.JobControl
	mouse   bool
	clicked clicked
	meter   widget.Meter
	used    map[string]bool // names of the commands used since the help was shown last
	leaving bool            // the program was told to quit
	cmds    []tea.Cmd
}

// Messages that the runner's goroutines send to the event loop.
type (
	openedMsg struct {
		session session.Session
		trace   *trace.Trace
		index   *analyze.Index // index of the trace
		err     error
	}
	eventsMsg []session.Event
	endedMsg  struct{ reason error } // the event stream has ended
	doneMsg   struct {
		id    int
		reply session.Reply
		err   error
	}
	noteMsg struct { // a background task has finished
		kind string // which task, as passed to notes.later
		what string
		text string
		err  error
	}
	fadeMsg struct{ id int }
	logMsg  struct{}
	// backgroundMsg reports the background color of a terminal that answers only after the first frame.
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
		shell: tty.NewJobControl(), used: map[string]bool{},
	}
	if a.w == 0 || a.h == 0 {
		a.w, a.h = widget.MainWidth, mainHeight
	}
	a.assemble()
	a.deeds = map[string]command.Action{}
	for _, act := range a.actions() {
		a.deeds[act.Name] = act
	}
	for i := range all.Views {
		a.views = append(a.views, all.Views[i].New(hosting{a}, a.log))
		if all.Views[i].First {
			a.current = i
		}
	}
	return a, nil
}

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
	a.model.mirror.Budget = a.opts.Budget
	a.stage = newStage()
	a.inputs = &inputs{notes: a.notes}
	a.overlays = &overlays{notes: a.notes, inputs: a.inputs, work: a.jobs}
	a.stage.onLeave = func() { a.overTask.Drop(a.jobs) }
	a.selection = &selection{
		model: a.model, notes: a.notes, inputs: a.inputs, stage: a.stage, opts: &a.opts,
	}
	a.pilot = &pilot{selection: a.selection, opts: &a.opts}
	a.restarts = &restarts{pilot: a.pilot}
	a.lab = lab.New(labHost{hosting{a}}, a.jobs, lab.Options{Shaders: a.opts.Shaders, Cache: a.opts.Cache})
	a.exporter = &exporter{
		selection: a.selection, texts: a.overlays, opts: &a.opts, width: func() int { return a.w },
	}
	a.history = &history{selection: a.selection}
}

// runs sets the runner of the App's goroutines. Call runs before the first message arrives.
func (a *App) runs(r *widget.Runner) { a.runner, a.jobs.Runner = r, r }

// Init returns no command: Run opens the session.
func (a *App) Init() tea.Cmd { return nil }

// Update handles one message.
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
		if !a.typing() {
			a.read()
		}
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
			if p.wheel == 0 && !a.typing() {
				a.read()
			}
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
			a.report(m.text)
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
	case lab.Changed:
		a.lab.FileChanged(m)
	case lab.Edited:
		a.takeMouse()
		a.lab.EditorClosed(m)
	case leaveMsg:
		a.quit()
	}
	for len(a.held) > 0 && !a.awaited() {
		k := a.held[0]
		a.held = a.held[1:]
		if a.strike(k); len(a.held) > 0 {
			a.reload() // start loading what the held keys wait for
		}
	}
	a.takeNews()
	a.reload()
	if a.noteHolds != nil && !a.noteHolds() {
		a.unsay()
	}
	if (a.jobs.Open > 0 || a.jobs.Resting) && !a.jobs.Ticking { // to show "computing" if a job is slow
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

// View returns the frame to draw.
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

// awaited reports whether the next key has to wait for the rows or the text that the previous key requested.
// Keys do not wait for a job that takes longer than Jobs.Patience.
func (a *App) awaited() bool {
	if a.typing() {
		return a.completion.Awaited(a.jobs)
	}
	rows := a.view().Pane()
	return a.overTask.Awaited(a.jobs) || a.fileTask.Awaited(a.jobs) || rows != nil && rows.Job.Awaited(a.jobs)
}

// strike handles one key press.
func (a *App) strike(k widget.Key) {
	if !k.Urgent() {
		a.disarm()
	}
	a.asks()
	a.answering(func() { a.press(k) })
}

// asks is called at the start of each user action. It counts the action and shows the newest data, so that
// the action applies to the newest data.
func (a *App) asks() {
	a.jobs.Asked++
	a.takeNews()
}

// answering runs f, which responds to a user action. If f shows no note, answering removes the note of the
// previous action.
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

// press runs the command bound to a key in the current context.
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

// elsewhere is called for a key without effect in the current view. It tells the user which views use the
// key.
func (a *App) elsewhere(key string) {
	var means []string
	for i := range command.Table {
		if r := &command.Table[i]; a.over == nil && r.Of != "" && slices.Contains(r.Keys, key) {
			means = append(means, r.Name+" in "+strings.Join(all.Offering(r.Name, (*view.Row).Label), ", "))
		}
	}
	if means != nil {
		a.remark(fmt.Sprintf("%s has no effect in %s; in other views: %s", widget.Sign(key), a.row().Name, strings.Join(means, "; ")))
	}
}

// do runs a command, or tells the user why the command is not available now.
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
	a.used[r.Name] = true
	act.Run()
}

// hint says what the user can press next. It returns "" if the user has already followed every hint.
// Opening the help makes all hints appear again.
func (a *App) hint() string {
	available := func(name string) bool {
		i := slices.IndexFunc(command.Table, func(r command.Row) bool { return r.Name == name })
		return a.why(&command.Table[i]) == ""
	}
	return command.NextHint(available, func(name string) bool { return a.used[name] })
}

// place returns where a key press takes effect: in the open overlay or, without an overlay, in the current
// view.
func (a *App) place() command.Where {
	if a.over != nil {
		return overText
	}
	return a.inView(command.Moving, command.InViews, command.Anywhere)
}

// inView returns the context for keys in the current view. In this context, only the commands that work in
// one of the given places have keys.
func (a *App) inView(in ...command.Place) command.Where {
	list := a.view().Actions()
	return command.Where{In: in, Offers: func(name string) bool { return view.ActionOf(list, name) != nil }}
}

func (a *App) quit() {
	a.leaving = true
	a.cmds = append(a.cmds, tea.Quit)
}

// takeMouse turns mouse reports on again after another program had the terminal. Bubble Tea does not do this.
func (a *App) takeMouse() {
	if a.mouse {
		a.cmds = append(a.cmds, tea.EnableMouseCellMotion)
	}
}

// lentOver is a grace period after an editor gives the terminal back. A SIGINT in this period was meant for
// the editor, so it does not end the program.
const lentOver = time.Second

// handOver gives the terminal to another program until that program ends. It then calls `ended` and sends the
// result of `ended` to the event loop.
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

// cancel stops the running command or job. Pressed again within command.Again, without another key in
// between, cancel quits the program.
func (a *App) cancel() {
	if a.armed() {
		a.quit()
		return
	}
	a.interrupted = widget.Now()
	switch {
	case a.typing():
		a.closeInput()
		a.say(command.Keyed("press {cancel} again to quit"))
	case a.stopLooking(), a.stop(), a.view().Stop():
		a.say(command.Keyed("cancelled; press {cancel} again to quit"))
	default:
		a.remark(command.Keyed("nothing is running; press {cancel} again to quit"))
	}
	a.noteHolds = a.armed
	a.fade(command.Again)
}
