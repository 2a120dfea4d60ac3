package tui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"gpuscope/model/session"
	"gpuscope/trace"
	"gpuscope/trace/inspect"
	"gpuscope/trace/table"
)

// model is what is looked at: a running session or a recorded trace, and which of its steps.
type model struct {
	session session.Session // nil until opened, and where a trace is shown
	isTrace bool
	lost    bool // the session's events ended
	mirror  session.Mirror
	opening error          // why there is no session
	index   *inspect.Index // of mirror.Trace
	shown   int            // index into Trace.Steps of the step that is shown, -1 before the first
	follow  bool
	version int // of the data: rises with every change of what is shown

	chosen // what tables speak of and are compared with (scope.go)
	spoken spoken

	summary  task[summaryKey, *inspect.StepSummary]
	happened task[*inspect.Index, []inspect.Event] // in the steps that there are

	job      *job
	queued   *session.Command
	commands int
	breaks   breakpoints  // at which runs pause
	hit      *trace.Event // at which the last run has paused
}

// job is a command on its way.
type job struct {
	id        int
	command   session.Command
	cancel    context.CancelFunc
	cancelled bool
}

// spoken is the scope that was chosen and its base, as they are in a version of the data.
type spoken struct {
	version, shown int
	index          *inspect.Index
	scope          inspect.Scope
	against        *inspect.Base
}

func newModel() model {
	return model{shown: -1, follow: true, chosen: chosen{from: -1, to: -1, base: noBase}}
}

// repeats is how many samples one press of R adds.
const repeats = 10

// snapshot is what the views draw from. It does not change after it was handed out.
type snapshot struct {
	index *inspect.Index // nil until the trace's header is there
	trace *trace.Trace
	step  int // that is shown, -1: none
	// scope is the steps that tables speak of, against what they are compared with, nil for nothing; both
	// are there with the step. base is that step where it is one of this trace, else -1.
	scope   inspect.Scope
	against *inspect.Base
	base    int
	chosen  base            // what a person chose to compare with
	events  []inspect.Event // of all steps, or of those when a job last looked
	// from and to are the ends of the range of steps that is marked, -1 where none is.
	from, to int
	state    session.State
	text     session.Text
	live     bool // a session stands behind it
	running  bool // it is doing something
	version  int
}

// summaryKey is what a summary is of: a step, in a version of the data.
type summaryKey struct{ version, step int }

func (m *model) snapshot() snapshot {
	s := snapshot{
		step: m.shown, base: -1, from: -1, to: -1, state: m.mirror.State, text: m.mirror.Text,
		live: m.session != nil, running: m.job != nil, version: m.version, events: m.happened.value,
		chosen: m.base,
	}
	if m.mirror.Trace != nil {
		s.index, s.trace = m.index, m.index.Trace
	}
	if s.step < 0 || s.trace == nil {
		return s
	}
	if from, to, ok := m.marks(); ok {
		s.from, s.to = from, to
	}
	now := spoken{version: s.version, shown: s.step, index: s.index}
	if is := &m.spoken; is.version != now.version || is.shown != now.shown || is.index != now.index {
		now.scope = m.inScope()
		now.against = m.compared(now.scope)
		m.spoken = now
	}
	s.scope, s.against = m.spoken.scope, m.spoken.against
	if s.against != nil && s.against.Index == s.index {
		if step, one := s.against.Scope.One(); one {
			s.base = step
		}
	}
	return s
}

// loadSummary wants what the shown step cost, and what happened in all steps.
func (a *App) loadSummary(s snapshot) {
	if s.step < 0 {
		a.summary.clear(a.jobs)
		return
	}
	a.happened.want(a.jobs, s.index, s.index.Events, nil)
	a.summary.want(a.jobs, summaryKey{s.version, s.step},
		func(context.Context) (*inspect.StepSummary, error) { return s.index.Summary(s.step), nil }, nil)
}

func (a *App) opened(m openedMsg) {
	switch {
	case m.err != nil && a.mirror.Trace != nil:
		a.lost = true
		a.failed(m.err)
	case m.err != nil:
		a.opening = m.err // what Run returns
		a.quit()
	case m.trace != nil:
		a.isTrace = true
		for i := range m.trace.Steps {
			a.logCompiled(&m.trace.Steps[i])
		}
		for i := range m.trace.Events {
			a.log.Add("info", m.trace.Events[i].Text)
		}
		a.mirror.Trace, a.index = m.trace, m.index
		a.events(nil)
		a.shown = len(m.trace.Steps) - 1
		a.follow = false
	default:
		a.session = m.session
		a.begin()
	}
}

// events brings the mirror up to date.
func (a *App) events(list eventsMsg) {
	before, was, progress := a.mirror.Trace, a.again.opened, true
	for _, e := range list {
		progress = progress && e.Progress != nil
		if e.Log != nil {
			a.log.Add(e.Log.Level, e.Log.Text)
		}
		for i := range e.Records {
			if note := e.Records[i].Event; note != nil {
				a.log.Add("info", note.Text)
			}
			if s := e.Records[i].Step; s != nil {
				a.logCompiled(s)
			}
			if found := e.Records[i].Ceilings; found != nil {
				a.say("ceilings: " + strings.Join(inspect.CeilingFacts(found), " · "))
			}
		}
		if err := a.mirror.Apply(e); err != nil {
			a.fail(fmt.Errorf("not recorded: %w", err))
		}
		a.again.opened = a.again.opened || e.Opened != nil
	}
	t := a.mirror.Trace
	if t == nil || progress { // how far something has come changes no table
		return
	}
	if before != nil {
		a.dropped(t.DroppedSteps - before.DroppedSteps)
	}
	a.index = a.index.Next(t)
	if a.follow && a.session != nil {
		a.shown = a.stepOfState()
	}
	a.version++
	if !was {
		a.begin()
	}
}

// logCompiled keeps in the log which kernels a step had to wait for.
func (a *App) logCompiled(s *trace.Step) {
	for _, c := range s.CPU.Compiled {
		took := table.Millis(c.NS.NS())
		a.log.Add("info", fmt.Sprintf("step %d: compiled %s in %s", s.Index, c.Kernel, took))
	}
}

// dropped follows the steps that are looked at when the oldest n go.
func (m *model) dropped(n int) {
	if m.shown >= 0 {
		m.shown = max(0, m.shown-n)
	}
	m.chosen.dropped(n)
}

// stepOfState is where the session's current step stands among those recorded.
func (a *App) stepOfState() int {
	at, ok := slices.BinarySearchFunc(a.mirror.Trace.Steps, a.mirror.State.Step,
		func(s trace.Step, index int) int { return cmp.Compare(s.Index, index) })
	if !ok {
		return -1
	}
	return at
}

// still are the commands that leave the text and its position as they are.
var still = []session.CommandKind{
	session.Timing, session.Ceilings, session.Chunk, session.Repeat, session.Tokenize, session.Look,
	session.Cost, session.Observe, session.TimeOp,
}

// yielding are the commands that nobody waits for the end of: another one stops them.
var yielding = []session.CommandKind{session.Run, session.Observe, session.Cost}

// command sends a command to the session. While another one runs it waits for it, and stops it if that is a
// yielding one; of several that wait the last one counts, so a held key steps as fast as the model does and
// not longer than it is held.
func (a *App) command(c session.Command) {
	if a.job != nil {
		a.queued = &c
		if slices.Contains(yielding, a.job.command.Kind) {
			a.stopJob()
		}
		return
	}
	a.mirror.Progress = session.Progress{} // what was said before is of another command
	if !slices.Contains(still, c.Kind) {
		a.follow, a.hit = true, nil
	}
	a.commands++
	ctx, cancel := context.WithCancel(a.runner.ctx)
	j := &job{id: a.commands, command: c, cancel: cancel}
	a.job = j
	s := a.session
	a.runner.start(func(context.Context) {
		defer cancel()
		reply, err := s.Do(ctx, c)
		a.runner.send(doneMsg{j.id, reply, err})
	})
}

func (a *App) done(m doneMsg) {
	if a.job == nil || a.job.id != m.id {
		return
	}
	j := a.job
	a.job = nil
	a.jobs.commands++ // what it brought is what is to be seen now
	a.version++
	if j.command.Kind == session.Resume {
		a.resumed(m.reply, m.err)
	}
	if errors.Is(m.err, session.ErrClosed) { // ended says why
		a.died, a.queued = busyWith[j.command.Kind], nil
		return
	}
	if m.err != nil && !(j.cancelled && errors.Is(m.err, context.Canceled)) {
		a.refused(j.command, m.err)
		a.queued = nil
	}
	if m.reply.Hit != nil {
		a.paused(m.reply.Hit)
		a.queued = nil
	}
	if c := a.queued; c != nil {
		a.queued = nil
		a.command(*c)
	} else if j.command.Kind == session.Run && m.reply.Steps > 0 && a.unobserved() {
		a.command(session.Command{Kind: session.Observe})
	}
}

// observedFor is how many steps what timing costs is taken to hold for.
const observedFor = 64

// unobserved says whether what timing costs the current step should be measured: it is a decode step of which
// each dispatch was timed, and that has not been measured near it.
func (a *App) unobserved() bool {
	t := a.mirror.Trace
	if t == nil || len(t.Steps) == 0 || a.lost || a.mirror.State.Upto != nil {
		return false
	}
	s := &t.Steps[len(t.Steps)-1]
	if s.Timing != "dispatch" || s.Phase != "decode" || s.Index != a.mirror.State.Step {
		return false
	}
	o := t.Observer
	return o == nil || o.Step != nil && s.Index-*o.Step >= observedFor
}

func (a *App) stopJob() {
	a.job.cancelled = true
	a.job.cancel()
}

// stop cancels what runs and what waits, and says whether there was anything.
func (a *App) stop() bool {
	a.queued = nil
	if a.job == nil {
		return false
	}
	a.stopJob()
	return true
}

// ceilings measures the device.
func (a *App) ceilings() { a.command(session.Command{Kind: session.Ceilings}) }

func (a *App) next() {
	if a.session == nil {
		a.showStep(1)
		return
	}
	a.unsettle()
	a.command(session.Command{Kind: session.Next})
}

func (a *App) back() {
	if a.session == nil {
		a.showStep(-1)
		return
	}
	a.unsettle()
	a.command(session.Command{Kind: session.Previous})
}

func (a *App) runPause() {
	if a.job != nil && a.job.command.Kind == session.Run {
		a.stop()
		return
	}
	a.settle()
	a.command(a.breaks.runs(session.Command{Kind: session.Run}))
}

func (a *App) reset() { a.command(session.Command{Kind: session.Reset}) }

func (a *App) toggleFollow() {
	a.follow = !a.follow
	if a.follow && a.session != nil {
		a.showIndex(a.stepOfState())
		a.follow = true
		a.say("following the newest step")
	} else {
		a.say(fmt.Sprintf("staying on step %d", a.shownIndex()))
	}
}

// nextEvent shows the next step at which something happened, or the one before, and says what. In a list the
// dispatch that it happened to is selected.
func (a *App) nextEvent(by int) {
	events := a.happened.value
	if !a.happened.has {
		a.remark("still looking for what happened")
		return
	}
	i := sort.Search(len(events), func(i int) bool { return events[i].Step > a.shown })
	if by < 0 {
		i = sort.Search(len(events), func(i int) bool { return events[i].Step >= a.shown }) - 1
	}
	if i < 0 || i >= len(events) {
		where := map[int]string{-1: "before", 1: "after"}[by]
		a.remark("nothing happened " + where + " this step")
		return
	}
	at := events[i].Step
	a.showStep(at - a.shown)
	s := a.step()
	var said []string
	for _, e := range events {
		if e.Step != at {
			continue
		}
		said = append(said, e.Text)
		if l, ok := a.view().(lister); ok && e.Dispatch != nil {
			l.pane().seek(*e.Dispatch)
		}
	}
	a.say(fmt.Sprintf("s%d pos %d: %s", s.Index, s.Position, strings.Join(said, " · ")))
}

// showStep shows the recorded step so many further on.
func (a *App) showStep(by int) {
	a.follow = false
	a.unsettle()
	last := len(a.index.Trace.Steps) - 1
	if by < 0 && a.shown == 0 || by > 0 && a.shown == last {
		said := fmt.Sprintf("step %d is the %s that was recorded", a.shownIndex(), end(by))
		if a.note != said { // a key that is held says it once
			a.say(said)
		}
	}
	a.showIndex(clamp(a.shown+by, 0, last))
}

// end is the word for where the steps end, forwards or back.
func end(by int) string {
	if by < 0 {
		return "first"
	}
	return "last"
}

func (a *App) showIndex(i int) {
	if i != a.shown {
		a.shown = i
		a.version++
	}
}

// shownIndex is the number of the shown step.
func (a *App) shownIndex() int {
	if a.shown < 0 {
		return -1
	}
	return a.index.Trace.Steps[a.shown].Index
}

func (a *App) askPrompt() {
	a.ask(&question{
		label: "prompt",
		take:  func(s string) { a.command(session.Command{Kind: session.Prompt, Text: s}) },
	})
}

func (a *App) askFilter() {
	f, ok := a.view().(filterer)
	if !ok {
		return
	}
	before := f.filtered()
	q := &question{
		label: "filter", live: f.setFilter, take: f.setFilter,
		leave: func() { f.setFilter(before) },
	}
	q.line.suggest(before)
	a.ask(q)
}

// Reasons for which an action cannot be done now.

// isRecorded is why what needs a session is refused on a recorded trace.
const isRecorded = "this is a recorded trace; start gpuscope with a model"

func needsSession(a *App) string {
	switch {
	case a.isTrace:
		return isRecorded
	case a.lost:
		return keyed("the engine has gone; {restart} starts it again")
	case a.session == nil || a.mirror.Trace == nil:
		return "the model is still loading"
	}
	return ""
}

// needsGraph is content with what is known before the first step.
func needsGraph(a *App) string {
	if a.mirror.Trace == nil {
		return "nothing is open yet"
	}
	return ""
}

func needsTrace(a *App) string {
	if a.mirror.Trace == nil {
		return "nothing is open yet"
	}
	if len(a.mirror.Trace.Steps) == 0 {
		return "no step was run yet"
	}
	return ""
}

func needsShown(a *App) string {
	if why := needsTrace(a); why != "" {
		return why
	}
	if a.shown < 0 {
		return keyed("no step is shown; {step before} shows those that were recorded")
	}
	return ""
}

// needsStep wants a step that the session stands at, or is about to.
func needsStep(a *App) string {
	if why := needsSession(a); why != "" {
		return why
	}
	if a.mirror.State.Step < 0 && a.job == nil {
		return "the model stands before the first step"
	}
	return ""
}

func cannotNext(a *App) string {
	if a.isTrace {
		return needsTrace(a)
	}
	if why := needsSession(a); why != "" {
		return why
	}
	switch {
	case a.mirror.State.Ended:
		return keyed("the text has ended: {back} goes back, {prompt} types a new prompt")
	case len(a.mirror.Text.Prompt) == 0 && a.job == nil:
		return keyed("there is no text yet: {prompt} types a prompt")
	}
	return ""
}

// cannotRun lets a run be paused whatever else is.
func cannotRun(a *App) string {
	if a.job != nil {
		return needsSession(a)
	}
	if a.isTrace {
		return needsSession(a)
	}
	return cannotNext(a)
}

func cannotBack(a *App) string {
	if a.isTrace {
		return needsTrace(a)
	}
	return needsStep(a)
}
