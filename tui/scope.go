package tui

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/report"
	"gpuscope/tui/command"
	"gpuscope/tui/view"
	"gpuscope/tui/widget"
)

// selection is which steps tables show, and what they are compared with.
type selection struct {
	*model
	*notes
	*inputs
	*stage
}

// scopeRow is a choice of steps that the tables may speak of.
type scopeRow struct {
	name string
	// of is the steps of it in a trace, none where there are none. m says what a person looks at.
	of func(x *analyze.Index, m *model) analyze.Selection
}

// scopes are what a person goes through, in that order.
var scopes = []scopeRow{
	{"this step", func(x *analyze.Index, m *model) analyze.Selection {
		if m.shown < 0 || m.shown >= len(x.Trace.Steps) {
			return analyze.Selection{}
		}
		return x.Step(m.shown)
	}},
	{"warm decode steps", func(x *analyze.Index, _ *model) analyze.Selection {
		return x.Phase(trace.Decode)
	}},
	{"prefill", func(x *analyze.Index, _ *model) analyze.Selection { return x.Phase(trace.Prefill) }},
	{"marked steps", func(x *analyze.Index, m *model) analyze.Selection {
		from, to, ok := m.marks()
		if !ok {
			return analyze.Selection{}
		}
		return x.Range(from, to)
	}},
}

// Those that are spoken of by name.
const (
	thisStep = iota
	warmDecode
	prefill
	markedSteps
)

// chosen is what a person wants the tables to speak of, and what to be compared with it.
type chosen struct {
	scope int // in scopes
	// settling says that the scope came with a run: nobody chose it.
	settling bool
	// from and to are the indices of the marked steps; to < 0: up to the one that is shown; from < 0: none.
	from, to int
	base     view.Base
	file     *analyze.Index // the trace that base.file names
	fileTask widget.Task[string, *analyze.Index]
}

// marks are the ends of the range that is marked.
func (m *model) marks() (from, to int, ok bool) {
	if m.from < 0 {
		return 0, 0, false
	}
	from, to = m.from, m.to
	if to < 0 {
		to = max(0, m.shown)
	}
	return min(from, to), max(from, to), true
}

// inScope is the steps that tables speak of, and which of the choices that is: what was chosen, where there
// is any of it. While the model runs it is all warm steps so far, so that figures settle.
func (m *model) inScope() (of int, s analyze.Selection) {
	if s = scopes[m.scope].of(m.index, m); len(s.Steps) == 0 {
		return thisStep, scopes[thisStep].of(m.index, m)
	}
	return m.scope, s
}

// scopeWords say which steps tables speak of, in some room and in little.
func (sel *selection) scopeWords() (words, short string) {
	s := sel.tabled()
	switch {
	case sel.speaks().of == thisStep:
		return scopes[thisStep].name, s.Short()
	case s.Rerouted > 0:
		return report.SelectionText(s), s.Counted()
	}
	return report.SelectionText(s), s.Short()
}

// tabled is the scope as the view has it: one that sums times up, of the steps on the routes of the last.
func (sel *selection) tabled() analyze.Selection {
	s := sel.speaks().scope
	if sel.view().Takes() == report.AnySteps {
		s = sel.index.Routed(s)
	}
	return s
}

// compared is what tables about a scope are compared with, nil for nothing.
func (m *model) compared(to analyze.Selection) *analyze.Baseline {
	if len(to.Steps) == 0 {
		return nil
	}
	if m.base.File != "" {
		return m.inFile(to)
	}
	var s analyze.Selection
	switch b := m.base; {
	case b.Scope == thisStep && b.Step < len(m.index.Trace.Steps):
		s = m.index.Step(b.Step)
	case b.Scope > thisStep:
		s = scopes[b.Scope].of(m.index, m)
	}
	if len(s.Steps) == 0 || slices.Equal(s.Steps, to.Steps) {
		s = m.before(to)
	}
	if len(s.Steps) == 0 || slices.Equal(s.Steps, to.Steps) {
		return nil
	}
	return &analyze.Baseline{Index: m.index, Selection: s}
}

// before is what a scope is compared with where nobody chose.
func (m *model) before(to analyze.Selection) analyze.Selection {
	step, one := to.One()
	switch {
	case !one || to.Name == string(trace.Decode): // maybe of one step so far
		return m.index.Phase(trace.Prefill)
	case step > 0:
		return m.index.Step(step - 1)
	}
	return analyze.Selection{}
}

// inFile is the same kind of steps in another trace.
func (m *model) inFile(to analyze.Selection) *analyze.Baseline {
	if m.file == nil {
		return nil
	}
	return command.SameKind(m.file, m.base.File, m.index, to)
}

// nextScope goes to the next choice that has steps, or the one before.
func (sel *selection) nextScope(by int) {
	n := len(scopes)
	to := sel.scope
	for range n {
		to = (to + by + n) % n
		if len(scopes[to].of(sel.index, sel.model).Steps) > 0 {
			break
		}
	}
	sel.setScope(to)
	words, _ := sel.scopeWords()
	if s := sel.tabled(); s.Rerouted > 0 {
		const others = "; %d more, up to %s, used other routes: {mark step} on two of them selects a range"
		words += fmt.Sprintf(command.Keyed(others), s.Rerouted, s.Unlike)
	}
	sel.say("selection: " + words)
}

func (sel *selection) setScope(to int) {
	sel.scope, sel.settling = to, false
	sel.version++
}

// settle lets the tables speak of all warm steps while the model runs, unless a person chose what grows with
// the run.
func (sel *selection) settle() {
	if sel.scope == warmDecode || sel.scope == markedSteps && sel.to < 0 {
		return
	}
	sel.setScope(warmDecode)
	sel.settling = true
}

// leaveScope goes back to this step: one step was asked for, and that is what a person is to see, in every
// view. It says so where the scope was chosen.
func (sel *selection) leaveScope() string {
	chosen := sel.scope != thisStep && !sel.settling
	if sel.scope != thisStep {
		sel.setScope(thisStep)
	}
	if chosen {
		return "selection: " + scopes[thisStep].name
	}
	return ""
}

// markStep marks the step that is shown as one end of a range, and the next time as the other.
func (sel *selection) markStep() {
	sel.shown = sel.at() // up to which an open range goes
	switch {
	case sel.from < 0 || sel.to >= 0:
		sel.from, sel.to = sel.shown, -1
		sel.say(fmt.Sprintf(command.Keyed("marked from s%d on; {mark step} on another step ends the range"),
			sel.shownIndex()))
	default:
		sel.to = sel.shown
		from, to, _ := sel.marks()
		sel.say(fmt.Sprintf(command.Keyed("marked %s; {selection} selects it"),
			sel.index.Range(from, to).Name))
	}
	sel.version++
}

// setBase makes what the tables speak of what they are compared with, or with it as the base nothing special.
func (sel *selection) setBase() {
	b := view.Base{Scope: sel.speaks().of, Step: -1}
	if b.Scope == thisStep {
		b.Step = sel.at()
	}
	if b == sel.base {
		sel.base = view.NoBase
		sel.say("baseline: the previous step, or the prefill for several steps")
	} else {
		sel.base = b
		s := sel.speaks().scope
		said := fmt.Sprintf(command.Keyed("baseline: %s; {baseline} on it again removes it"),
			report.SelectionText(s))
		if s.Chunk != "" {
			said += command.Keyed("; for another chunk, show it ({previous step}) and press {baseline}")
		}
		sel.say(said)
	}
	sel.file = nil
	sel.version++
}

// askBase wants the trace that tables are compared with.
func (sel *selection) askBase() {
	const hint = "path of a trace; empty: the previous step again"
	sel.ask(&question{label: "baseline trace", hint: hint, take: func(path string) {
		if path = command.Expand(path); path == "" {
			sel.base, sel.file = view.NoBase, nil
			sel.mended(&sel.fileTask)
			sel.version++
			return
		}
		sel.openBase(path)
	}})
}

// openBase reads a trace beside the event loop.
func (sel *selection) openBase(path string) {
	sel.fileTask.Clear(sel.jobs)
	sel.fileTask.Want(sel.jobs, path, func(ctx context.Context) (*analyze.Index, error) {
		return command.ReadBase(ctx, path)
	}, func(x *analyze.Index) {
		sel.base, sel.file = view.Base{Scope: -1, Step: -1, File: path}, x
		sel.version++
		said := fmt.Sprintf("baseline: %s, %s", filepath.Base(path),
			widget.Plural(len(x.Trace.Steps), "step"))
		sel.say(widget.Joined("; ", said, report.OtherTrace(sel.index, x).Text))
	})
}

// dropped follows the marked steps when the oldest n go.
func (c *chosen) dropped(n int) {
	if c.from >= 0 {
		c.from = max(0, c.from-n)
	}
	if c.to >= 0 {
		c.to = max(0, c.to-n)
	}
	if c.base.Scope == thisStep {
		if c.base.Step -= n; c.base.Step < 0 {
			c.base = view.NoBase
		}
	}
}
