package tui

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/report"
	"gpuscope/trace/table"
	"gpuscope/tui/command"
	"gpuscope/tui/view"
	"gpuscope/tui/widget"
)

// model holds the data on display: a running session or a recorded trace, and which of its steps is shown.
type model struct {
	again
	jobs    *widget.Jobs
	session session.Session // nil until the session is open, and always nil for a trace
	isTrace bool
	lost    bool // the session's event stream has ended
	mirror  session.Mirror
	opening error // error of opening the session or trace

	// The screen shows the fields below. takeNews copies all of them at once from the mirror. While the
	// model runs, the mirror is newer than these fields.
	index *analyze.Index // index of the mirror's trace
	state session.State
	text  session.Text
	news  bool // the mirror has changed since the last takeNews

	newsAsked int // number of user actions (jobs.Asked) at the last takeNews

	shown   int // index in Trace.Steps of the shown step; -1 before the first step
	follow  bool
	version int // version of the shown data: rises with every change

	chosen // the selected steps and their baseline (scope.go)
	spoken spoken

	took     widget.Task[tookKey, table.Line]
	awaits   *awaited // nil: no result is outstanding
	outcome  view.OutcomeTask
	happened widget.Task[*analyze.Index, []analyze.Event] // events in the recorded steps

	job      *job
	queued   *session.Command
	commands int
	breaks   command.Breakpoints // conditions at which runs pause
	hit      *trace.Event        // the event at which the last run paused
}

// job is a command that the session is executing.
type job struct {
	id        int
	command   session.Command
	cancel    context.CancelFunc
	cancelled bool
	events    int // number of events in the trace when the command began
}

// spoken caches the selected steps and their baseline for one version of the data.
type spoken struct {
	version, shown int
	index          *analyze.Index
	of             int // index of the selection in the list `scopes`; thisStep if the user selected nothing
	scope          analyze.Selection
	against        *analyze.Baseline
}

func newModel(j *widget.Jobs) *model {
	return &model{jobs: j, shown: -1, follow: true, chosen: chosen{from: -1, to: -1, base: view.NoBase}}
}

// tookKey identifies a summary line: the data and the steps that the line describes.
type tookKey struct {
	view.SummaryKey
	takes report.Takes
	of    string // name of the selected steps
}

// speaks returns the selected steps and their baseline. It computes them again if the data changed. At least
// one step must be recorded.
func (m *model) speaks() *spoken {
	now := spoken{version: m.version, shown: m.shown, index: m.index}
	if is := &m.spoken; is.version != now.version || is.shown != now.shown || is.index != now.index {
		now.of, now.scope = m.inScope()
		now.against = m.compared(now.scope)
		m.spoken = now
	}
	return &m.spoken
}

// at returns the index in Trace.Steps of the last selected step, or -1 before the first step. The header,
// and other parts of the screen that have room for only one step, show this step.
func (m *model) at() int {
	if m.shown < 0 || m.shown >= len(m.index.Trace.Steps) {
		return -1
	}
	return m.speaks().scope.Last()
}

func (m *model) snapshot() view.Snapshot {
	s := view.Snapshot{
		Step: -1, Base: -1, From: -1, To: -1, State: m.state, Text: m.text,
		Live: m.session != nil, Running: m.job != nil, Version: m.version, Events: m.happened.Value,
		Chosen: m.base, Recorded: m.isTrace, Lost: m.lost, Session: m.session, Progress: m.mirror.Progress,
	}
	if m.index != nil {
		s.Index, s.Trace, s.Step = m.index, m.index.Trace, m.at()
	}
	if s.Step < 0 {
		return s
	}
	if from, to, ok := m.marks(); ok {
		s.From, s.To = from, to
	}
	s.Scope, s.Against = m.speaks().scope, m.speaks().against
	if s.Against != nil && s.Against.Index == s.Index {
		if step, one := s.Against.Selection.One(); one {
			s.Base = step
		}
	}
	return s
}

// loadTook starts jobs that update the summary line of the view's steps and the list of events of all steps,
// if these are out of date.
func (a *App) loadTook(s view.Snapshot) {
	view.WantOutcome(&a.outcome, a.jobs, s)
	if s.Step < 0 {
		a.took.Clear(a.jobs)
		return
	}
	a.happened.Want(a.jobs, s.Index, func(ctx context.Context) ([]analyze.Event,
		error,
	) {
		return report.Events(ctx, s.Index)
	}, nil)
	takes := a.view().Takes()
	a.took.Want(a.jobs, tookKey{view.SummaryKey{Version: s.Version, Step: s.Step}, takes, s.Named(takes)},
		func(context.Context) (table.Line, error) { return report.TimesLine(s.Index, s.Of(takes)), nil }, nil)
}

func (a *App) opened(m openedMsg) {
	switch {
	case m.err != nil && a.mirror.Trace != nil:
		a.lost = true
		a.failed(m.err)
	case m.err != nil:
		a.opening = m.err // Run returns this error to its caller
		a.quit()
	case m.trace != nil:
		a.isTrace = true
		for i := range m.trace.Steps {
			logCompiled(&m.trace.Steps[i], a.log.Recorded)
		}
		for i := range m.trace.Events {
			a.log.Recorded(m.trace.Events[i].Text)
		}
		a.mirror.Trace, a.index = m.trace, m.index
		a.news = true
		a.takeNews()
		a.shown = len(m.trace.Steps) - 1
		a.follow = false
	default:
		a.session = m.session
		a.lab.Begin()
		a.begin()
	}
}

// events applies a batch of events to the mirror.
func (a *App) events(list eventsMsg) {
	was, progress := a.again.opened, true
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
				logCompiled(s, func(text string) { a.log.Add("info", text) })
			}
			if found := e.Records[i].Ceilings; found != nil {
				a.report("ceilings: " + strings.Join(report.CeilingFacts(found), " · "))
			}
		}
		if err := a.mirror.Apply(e); err != nil {
			a.fail(nil, fmt.Errorf("event not recorded: %w", err))
		}
		if e.Opened != nil {
			a.again.opened, a.opening = true, nil
		}
	}
	if a.mirror.Trace == nil || progress { // progress events change no table
		return
	}
	a.news = true
	a.takeNews()
	a.answered()
	if !was {
		a.begin()
	}
}

// takeNews copies the mirror's state to the fields that the screen shows, so that the header and the views
// show the same state of the run. It copies at once after a user action or the end of a command. Otherwise it
// waits until all jobs have ended and a rest period has passed.
func (m *model) takeNews() {
	asked := m.newsAsked != m.jobs.Asked
	switch {
	case !m.news:
		return
	case m.index == nil || m.job == nil || asked || m.lost:
	case m.jobs.Open > 0:
		return
	case widget.Now().Before(m.jobs.Rest):
		m.jobs.Resting = true
		return
	}
	m.news, m.newsAsked = false, m.jobs.Asked
	m.jobs.Rest = time.Time{}
	t := m.mirror.Trace
	if m.index != nil {
		m.dropped(t.DroppedSteps - m.index.Trace.DroppedSteps)
	}
	m.index, m.state, m.text = m.index.Next(t), m.mirror.State, m.mirror.Text
	if m.follow && m.session != nil {
		m.shown = m.stepOfState()
	}
	m.version++
}

// logCompiled logs which kernels a step had to compile.
func logCompiled(s *trace.Step, tell func(text string)) {
	for _, c := range s.CPU.Compiled {
		took := table.Millis(c.NS.NS())
		tell(fmt.Sprintf("step %d: compiled %s in %s", s.Index, c.Kernel, took))
	}
}

// dropped adjusts the indices of the shown step and of the chosen steps after the trace has dropped its
// oldest n steps.
func (m *model) dropped(n int) {
	if m.shown >= 0 {
		m.shown = max(0, m.shown-n)
	}
	m.chosen.dropped(n)
}

// stepOfState returns the index in Trace.Steps of the session's current step, or -1 if that step is not
// recorded.
func (m *model) stepOfState() int {
	at, ok := slices.BinarySearchFunc(m.index.Trace.Steps, m.state.Step,
		func(s trace.Step, index int) int { return cmp.Compare(s.Index, index) })
	if !ok {
		return -1
	}
	return at
}
