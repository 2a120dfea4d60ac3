package view

import (
	"fmt"
	"strings"

	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/report"
	_ "gpuscope/trace/report/all" // registers the tables
	"gpuscope/trace/table"
	"gpuscope/tui/command"
)

// Snapshot is the data that the views draw. It never changes after it has been created.
type Snapshot struct {
	Index *analyze.Index // nil until the trace's header has arrived
	Trace *trace.Trace
	Step  int // the shown step, which is the last of Scope; -1: none
	// Scope holds the selected steps. Against is their baseline, or nil if there is none. Scope and
	// Against are only set if a step is shown. If the baseline is a single step of this trace, Base is
	// the index of this step, else -1.
	Scope   analyze.Selection
	Against *analyze.Baseline
	Base    int
	Chosen  Base            // baseline that the user chose
	Events  []analyze.Event // events of all steps, up to the last time a job collected them
	// From and To are the first and last step of the marked range, or -1 if no range is marked.
	From, To int
	State    session.State
	Text     session.Text
	Live     bool // the data belongs to a session, not to a recorded trace
	Running  bool // the session is running a command
	Recorded bool // a recorded trace is shown
	Lost     bool // the engine has crashed
	Session  session.Session
	Progress session.Progress
	Version  int
}

// SummaryKey identifies a summary by its step and the version of the data.
type SummaryKey struct{ Version, Step int }

// Base is the user's choice of a baseline. Without a choice, the baseline is the previous step, or the
// prefill if several steps are selected.
type Base struct {
	Scope int // index of the selection; 0: the single step in Step; -1: no choice
	Step  int
	File  string // path of another trace; "": this trace
}

var NoBase = Base{Scope: -1, Step: -1}

// Of returns the selected steps that a view with the given Takes shows.
func (s Snapshot) Of(takes report.Takes) analyze.Selection {
	return command.Part(s.Index, s.Scope, s.Against, takes)
}

// Named returns the name of the steps that a view with the given Takes shows, or "" if there are none.
// Different steps have different names.
func (s Snapshot) Named(takes report.Takes) string {
	if s.Step < 0 || s.Trace == nil {
		return ""
	}
	of := s.Of(takes)
	if of.Apart > 0 {
		return fmt.Sprintf("%s of %d tokens", of.Name, of.Tokens)
	}
	return of.Name
}

// Options returns the options for computing a table.
func (s Snapshot) Options(takes report.Takes, fold analyze.Grouping) analyze.Options {
	return analyze.Options{Selection: s.Of(takes), Baseline: s.Against, Grouping: fold}
}

// form is how a table is looked at: its columns keep their places while it stays the same.
type form struct {
	fold    analyze.Grouping
	phase   trace.Phase
	several string // name of the selection if it has several steps
	base    Base
}

// FormOf returns how a view with the given Takes looks at its table: the grouping, the phase of the shown
// step or the selected steps, and the chosen baseline. It is the same for all single steps of a phase.
func (s Snapshot) FormOf(takes report.Takes, fold analyze.Grouping) any {
	f := form{fold: fold, phase: s.Trace.Steps[s.Step].Phase, base: s.Chosen}
	if of := s.Of(takes); len(of.Steps) > 1 {
		f.several = of.Name
	}
	return f
}

// Stands returns a note that says which of several selected steps a view of one step shows. The note is empty
// if only one step is selected.
func (s Snapshot) Stands(v View) table.Segment {
	if _, one := s.Scope.One(); s.Step < 0 || one || v.Takes() != report.OneStep {
		return table.Segment{}
	}
	n, of := s.Trace.Steps[s.Step].Index, s.Scope
	if v.Sums() {
		of = s.Of(report.AnySteps)
	}
	return table.Segment{
		Text:  fmt.Sprintf("s%d, last of %s", n, strings.TrimPrefix(report.SelectionText(of), "all ")),
		Short: fmt.Sprintf("s%d of %s", n, s.Scope.Name),
	}
}

// LastOfBase returns a baseline that consists of the last step of the current baseline, for the comparison of
// plans.
func (s Snapshot) LastOfBase() *analyze.Baseline {
	b := s.Against
	if b == nil {
		return nil
	}
	return &analyze.Baseline{Index: b.Index, Selection: b.Index.Step(b.Selection.Last())}
}
