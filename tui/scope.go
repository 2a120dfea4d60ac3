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

// selection holds the steps that tables show, and the baseline they are compared with.
type selection struct {
	*model
	*notes
	*inputs
	*stage
	opts *Options
	// traces are the paths that the key tab last found while the user typed the path of a baseline trace.
	// The task `completion` finds these paths.
	traces     []string
	completion widget.Task[string, []string]
}

// scopeRow is one of the selections of steps that the user can choose for tables.
type scopeRow struct {
	name string
	// of returns the steps of this selection in a trace; the selection may be empty. m holds the shown
	// and the marked steps.
	of func(x *analyze.Index, m *model) analyze.Selection
}

// scopes are the selections that the user can cycle through, in this order.
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

// Indices into scopes.
const (
	thisStep = iota
	warmDecode
	prefill
	markedSteps
)

// chosen is the user's choice of steps for tables and of their baseline.
type chosen struct {
	scope int // index in scopes
	// settling reports that a run chose the selection automatically, not the user.
	settling bool
	// from and to are the indices of the first and the last marked step. A negative from means that no
	// step is marked. If only to is negative, the range ends at the shown step.
	from, to int
	base     view.Base
	file     *analyze.Index // the trace named by base.File
	fileTask widget.Task[string, *analyze.Index]
}

// marks returns the first and last step of the marked range.
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

// inScope returns the selected steps and the index of their selection in scopes. If the chosen selection has
// no steps, inScope returns the shown step.
func (m *model) inScope() (of int, s analyze.Selection) {
	if s = scopes[m.scope].of(m.index, m); len(s.Steps) == 0 {
		return thisStep, scopes[thisStep].of(m.index, m)
	}
	return m.scope, s
}

// scopeWords returns a long and a short description of the selected steps.
func (sel *selection) scopeWords() (words, short string) {
	s := sel.tabled()
	switch {
	case sel.speaks().of == thisStep:
		return scopes[thisStep].name, s.Short()
	case s.Rerouted+s.Apart > 0:
		return report.SelectionText(s), s.Counted()
	}
	return report.SelectionText(s), s.Short()
}

// tabled returns the selected steps that the current view uses: those of its table or of its sums, or all of
// them if the view shows only the last one.
func (sel *selection) tabled() analyze.Selection {
	now, takes := sel.speaks(), sel.view().Takes()
	if takes == report.OneStep {
		if !sel.view().Sums() {
			return now.scope
		}
		takes = report.AnySteps
	}
	return command.Part(sel.index, now.scope, now.against, takes)
}

// compared returns the baseline for the given steps, or nil if there is none.
func (m *model) compared(to analyze.Selection) *analyze.Baseline {
	if len(to.Steps) == 0 {
		return nil
	}
	if m.base.File != "" {
		return m.inFile(to)
	}
	var s analyze.Selection
	chosen := true
	switch b := m.base; {
	case b.Scope == thisStep && b.Step < len(m.index.Trace.Steps):
		s = m.index.Step(b.Step)
	case b.Scope > thisStep:
		s = scopes[b.Scope].of(m.index, m)
	}
	if len(s.Steps) == 0 || slices.Equal(s.Steps, to.Steps) {
		s, chosen = m.before(to), false
	}
	if len(s.Steps) == 0 || slices.Equal(s.Steps, to.Steps) {
		return nil
	}
	return &analyze.Baseline{Index: m.index, Selection: s, Default: !chosen}
}

// before returns the default baseline: for one step the previous step, for several steps the prefill.
func (m *model) before(to analyze.Selection) analyze.Selection {
	step, one := to.One()
	switch {
	case !one || to.Name == string(trace.Decode): // also if there is only one decode step so far
		return m.index.Phase(trace.Prefill)
	case step > 0:
		return m.index.Step(step - 1)
	}
	return analyze.Selection{}
}

// inFile returns a baseline from the baseline trace: the steps with the same phase as the given selection.
func (m *model) inFile(to analyze.Selection) *analyze.Baseline {
	if m.file == nil {
		return nil
	}
	return command.SameKind(m.file, m.base.File, m.index, to)
}

// nextScope switches to the next selection that has steps, or to the previous one if `by` is negative.
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
		const others = "; %d more steps (up to %s) used other routes and are not selected; to select them, press {mark step} on the first and the last of them"
		words += fmt.Sprintf(command.Keyed(others), s.Rerouted, s.Unlike)
	}
	sel.say("selection: " + words)
}

func (sel *selection) setScope(to int) {
	sel.scope, sel.settling = to, false
	sel.version++
}

// settle is called while the model runs. It selects all warm decode steps, unless the user chose a range of
// marked steps that grows with the run.
func (sel *selection) settle() {
	if sel.scope == warmDecode || sel.scope == markedSteps && sel.to < 0 {
		return
	}
	sel.setScope(warmDecode)
	sel.settling = true
}

// leaveScope selects only the shown step, because the user asked to see one step. It returns a note for the
// user if this replaces a selection that the user chose, else "".
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

// markStep marks the shown step as one end of a range. The next call marks the other end and selects the
// range.
func (sel *selection) markStep() {
	sel.shown = sel.at() // a range without an end ends at this step
	switch {
	case sel.from < 0 || sel.to >= 0:
		sel.from, sel.to = sel.shown, -1
		sel.say(fmt.Sprintf(command.Keyed("range starts at s%d; press {mark step} on another step to end the range"),
			sel.shownIndex()))
	default:
		sel.to = sel.shown
		from, to, _ := sel.marks()
		sel.setScope(markedSteps)
		sel.say("selection: marked steps " + sel.index.Range(from, to).Name)
	}
	sel.version++
}

// setBase makes the selected steps the baseline. If these steps are the baseline already, it restores the
// default baseline.
func (sel *selection) setBase() {
	b := view.Base{Scope: sel.speaks().of, Step: -1}
	if b.Scope == thisStep {
		b.Step = sel.at()
	}
	if b == sel.base {
		sel.base = view.NoBase
		sel.say("baseline removed; tables are compared with the previous step or, if several steps are selected, with the prefill")
	} else {
		sel.base = b
		s := sel.index.Routed(sel.speaks().scope) // as every comparison narrows a baseline
		said := fmt.Sprintf(command.Keyed("baseline: %s; press {baseline} again to remove the baseline"),
			report.SelectionText(s))
		if s.Chunk != "" {
			said += command.Keyed("; to use another chunk of the prompt as the baseline, go to its step with {previous step} and press {baseline}")
		}
		sel.say(said)
	}
	sel.file = nil
	sel.version++
}

// askBase asks for the trace to use as the baseline.
func (sel *selection) askBase() {
	const hint = "path of a trace; tab: the newest in this folder; leave empty to compare with the previous step"
	q := &question{label: "baseline trace", hint: hint, take: func(path string) {
		if path = command.Expand(path); path == "" {
			sel.base, sel.file = view.NoBase, nil
			sel.mended(&sel.fileTask)
			sel.version++
			return
		}
		sel.openBase(path)
	}}
	q.complete = func() { sel.completeTrace(q) }
	sel.ask(q)
}

// completeTrace completes the path that the user is typing to the path of the newest matching trace. Each
// further call changes it to the path of the next trace found.
func (sel *selection) completeTrace(q *question) {
	typed := q.line.Text()
	if at := slices.Index(sel.traces, typed); at >= 0 && len(sel.traces) > 1 {
		q.line.Set(sel.traces[(at+1)%len(sel.traces)])
		return
	}
	sel.completion.Clear(sel.jobs)
	sel.completion.Want(sel.jobs, typed, func(ctx context.Context) ([]string, error) {
		return command.Traces(ctx, typed, sel.opts.File)
	}, func(paths []string) {
		switch sel.traces = paths; {
		case q.line.Text() != typed: // the user went on typing
		case len(paths) == 0:
			q.hint = "no trace in this folder; type a path"
		default:
			q.line.Set(paths[0])
		}
	})
}

// openBase reads the baseline trace in the background.
func (sel *selection) openBase(path string) {
	sel.fileTask.Clear(sel.jobs)
	sel.fileTask.Want(sel.jobs, path, func(ctx context.Context) (*analyze.Index, error) {
		return command.ReadBase(ctx, path)
	}, func(x *analyze.Index) {
		sel.base, sel.file = view.Base{Scope: -1, Step: -1, File: path}, x
		sel.version++
		said := fmt.Sprintf("baseline: %s, %s", filepath.Base(path),
			widget.Plural(len(x.Trace.Steps), "step"))
		sel.report(widget.Joined("; ", said, report.OtherTrace(sel.index, x).Text))
	})
}

// dropped adjusts the marked steps and the baseline after the trace has dropped its oldest n steps.
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
