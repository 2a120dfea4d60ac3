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

// Snapshot is what the views draw from. It does not change after it was handed out.
type Snapshot struct {
	Index *analyze.Index // nil until the trace's header is there
	Trace *trace.Trace
	Step  int // that is shown, the last of scope, -1: none
	// Scope is the steps that tables speak of, against what they are compared with, nil for nothing; both
	// are there with the step. base is that step where it is one of this trace, else -1.
	Scope   analyze.Selection
	Against *analyze.Baseline
	Base    int
	Chosen  Base            // what a person chose to compare with
	Events  []analyze.Event // of all steps, or of those when a job last looked
	// From and to are the ends of the range of steps that is marked, -1 where none is.
	From, To int
	State    session.State
	Text     session.Text
	Live     bool // it is of a session, not of a recorded trace
	Running  bool // it is doing something
	Recorded bool // a recorded trace is shown
	Lost     bool // the engine has crashed
	Session  session.Session
	Progress session.Progress
	Version  int
}

// SummaryKey is what a summary is of: a step, in a version of the data.
type SummaryKey struct{ Version, Step int }

// Base is what tables are compared with: without a choice the step before, for several steps the prefill.
type Base struct {
	Scope int // in scopes; of this step: step; -1: no choice
	Step  int
	File  string // path of another trace, "": this one
}

var NoBase = Base{Scope: -1, Step: -1}

// Of is the part of the scope that is spoken of where so many steps are taken.
func (s Snapshot) Of(takes report.Takes) analyze.Selection {
	return command.Part(s.Index, s.Scope, takes)
}

// Named is what the steps are called that a view takes; "" where there are none. What is of steps of another
// name is not of these.
func (s Snapshot) Named(takes report.Takes) string {
	if s.Step < 0 || s.Trace == nil {
		return ""
	}
	return s.Of(takes).Name
}

// options are what a table is asked with.
func (s Snapshot) options(takes report.Takes, fold analyze.Grouping) analyze.Options {
	return analyze.Options{Selection: s.Of(takes), Baseline: s.Against, Grouping: fold}
}

// Stands says of a view of one step which of the scope's that is, where it has several: "" where it does not
// go without saying.
func (s Snapshot) Stands(v View) table.Segment {
	if _, one := s.Scope.One(); s.Step < 0 || one || v.Takes() != report.OneStep {
		return table.Segment{}
	}
	n := s.Trace.Steps[s.Step].Index
	return table.Segment{
		Text:  fmt.Sprintf("s%d, last of %s", n, strings.TrimPrefix(report.SelectionText(s.Scope), "all ")),
		Short: fmt.Sprintf("s%d of %s", n, s.Scope.Name),
	}
}

// lastOfBase is the base with the last of its steps alone: what a plan is compared with.
func (s Snapshot) lastOfBase() *analyze.Baseline {
	b := s.Against
	if b == nil {
		return nil
	}
	return &analyze.Baseline{Index: b.Index, Selection: b.Index.Step(b.Selection.Last())}
}
