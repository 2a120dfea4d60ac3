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

// model is what is looked at: a running session or a recorded trace, and which of its steps.
type model struct {
	again
	jobs    *widget.Jobs
	session session.Session // nil until opened, and where a trace is shown
	isTrace bool
	lost    bool // the session's events ended
	mirror  session.Mirror
	opening error // why there is no session

	// What is shown of the mirror: while the model runs it is newer, and all of it is taken in at once.
	index *analyze.Index // of its trace
	state session.State
	text  session.Text
	news  bool // there is more in the mirror

	newsAsked int // jobs.asked when that was taken in last

	shown   int // index into Trace.Steps of "this step", -1 before the first; what is shown: at()
	follow  bool
	version int // of the data: rises with every change of what is shown

	chosen // what tables speak of and are compared with (scope.go)
	spoken spoken

	took     widget.Task[tookKey, table.Line]
	happened widget.Task[*analyze.Index, []analyze.Event] // in the steps that there are

	job      *job
	queued   *session.Command
	commands int
	breaks   command.Breakpoints // at which runs pause
	hit      *trace.Event        // at which the last run has paused
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
	index          *analyze.Index
	of             int // in scopes: what was chosen, or this step where there is none of that
	scope          analyze.Selection
	against        *analyze.Baseline
}

func newModel(j *widget.Jobs) *model {
	return &model{jobs: j, shown: -1, follow: true, chosen: chosen{from: -1, to: -1, base: view.NoBase}}
}

// tookKey is what the line of what steps took is of: what a view takes of the scope.
type tookKey struct {
	view.SummaryKey
	takes report.Takes
	of    string // the scope
}

// speaks is what tables speak of now. There are steps.
func (m *model) speaks() *spoken {
	now := spoken{version: m.version, shown: m.shown, index: m.index}
	if is := &m.spoken; is.version != now.version || is.shown != now.shown || is.index != now.index {
		now.of, now.scope = m.inScope()
		now.against = m.compared(now.scope)
		m.spoken = now
	}
	return &m.spoken
}

// at is the step that is shown: in the header, and wherever something is of one step. It is the last of the
// scope, as an index into Trace.Steps; -1 before the first.
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

// loadTook wants what the steps took that the view speaks of, and what happened in all steps.
func (a *App) loadTook(s view.Snapshot) {
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
		func(context.Context) (table.Line, error) { return report.CostLine(s.Index, s.Of(takes)), nil }, nil)
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
		a.lab.begins()
		a.begin()
	}
}

// events brings the mirror up to date.
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
				a.say("ceilings: " + strings.Join(report.CeilingFacts(found), " · "))
			}
		}
		if err := a.mirror.Apply(e); err != nil {
			a.fail(nil, fmt.Errorf("not recorded: %w", err))
		}
		if e.Opened != nil {
			a.again.opened, a.opening = true, nil
		}
	}
	if a.mirror.Trace == nil || progress { // how far something has come changes no table
		return
	}
	a.news = true
	a.takeNews()
	if !was {
		a.begin()
	}
}

// takeNews takes in what the mirror has, if it is time: header and views are of one state of the run. What a
// person does and the end of a command show the newest; else it waits for what is being computed, and rests.
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

// logCompiled tells the log which kernels a step had to wait for.
func logCompiled(s *trace.Step, tell func(text string)) {
	for _, c := range s.CPU.Compiled {
		took := table.Millis(c.NS.NS())
		tell(fmt.Sprintf("step %d: compiled %s in %s", s.Index, c.Kernel, took))
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
func (m *model) stepOfState() int {
	at, ok := slices.BinarySearchFunc(m.index.Trace.Steps, m.state.Step,
		func(s trace.Step, index int) int { return cmp.Compare(s.Index, index) })
	if !ok {
		return -1
	}
	return at
}
