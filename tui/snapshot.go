package tui

import (
	"fmt"
	"strings"

	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/trace/inspect"
	"gpuscope/trace/table"
	"gpuscope/tui/command"
)

// snapshot is what the views draw from. It does not change after it was handed out.
type snapshot struct {
	index *inspect.Index // nil until the trace's header is there
	trace *trace.Trace
	step  int // that is shown, the last of scope, -1: none
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
	recorded bool // a recorded trace is shown
	lost     bool // the engine has crashed
	session  session.Session
	progress session.Progress
	version  int
}

// summaryKey is what a summary is of: a step, in a version of the data.
type summaryKey struct{ version, step int }

// base is what tables are compared with: without a choice the step before, for several steps the prefill.
type base struct {
	scope int // in scopes; of this step: step; -1: no choice
	step  int
	file  string // path of another trace, "": this one
}

var noBase = base{scope: -1, step: -1}

// of is the part of the scope that is spoken of where so many steps are taken.
func (s snapshot) of(takes inspect.Takes) inspect.Scope { return command.Part(s.index, s.scope, takes) }

// named is what the steps are called that a view takes; "" where there are none. What is of steps of another
// name is not of these.
func (s snapshot) named(takes inspect.Takes) string {
	if s.step < 0 || s.trace == nil {
		return ""
	}
	return s.of(takes).Name
}

// options are what a table is asked with.
func (s snapshot) options(takes inspect.Takes, fold inspect.Fold) inspect.Options {
	return inspect.Options{Scope: s.of(takes), Base: s.against, Fold: fold}
}

// stands says of a view of one step which of the scope's that is, where it has several: "" where it does not
// go without saying.
func (s snapshot) stands(v View) table.Part {
	if _, one := s.scope.One(); s.step < 0 || one || v.takes() != inspect.OneStep {
		return table.Part{}
	}
	n := s.trace.Steps[s.step].Index
	return table.Part{
		Text:  fmt.Sprintf("s%d, last of %s", n, strings.TrimPrefix(s.scope.Words(), "all ")),
		Short: fmt.Sprintf("s%d of %s", n, s.scope.Name),
	}
}

// lastOfBase is the base with the last of its steps alone: what a plan is compared with.
func (s snapshot) lastOfBase() *inspect.Base {
	b := s.against
	if b == nil {
		return nil
	}
	return &inspect.Base{Index: b.Index, Scope: b.Index.Step(b.Scope.Last())}
}
