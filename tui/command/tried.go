package command

import (
	"fmt"
	"math"
	"slices"

	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/table"
	"gpuscope/tui/widget"
)

// TriedLines returns lines that tell the user the result of running an edited kernel.
func TriedLines(x *analyze.Index, t *session.Tried) []string {
	if t.Dispatch == nil {
		return []string{
			fmt.Sprintf("The source compiles. Nothing was measured because step %d does not run %s; %s.",
				t.Step, t.Kernel, WhichRun(x, t.Kernel)),
		}
	}
	lines := []string{
		fmt.Sprintf("Compared with kernel %s, on dispatch %d (%s) of step %d:", t.Kernel, *t.Dispatch,
			x.Name(*t.Dispatch), t.Step),
	}
	if t.Alone == nil {
		lines = append(lines, analyze.Labelled("times", "not measured: this device has no timestamps"))
	} else {
		lines = append(lines, analyze.Labelled("time", "isolated "+TurnsText(t.Alone)))
	}
	switch {
	case t.Stray:
		const why = " not run: the edited source writes a state value (such as the cache) that the original kernel does not write"
		lines = append(lines, analyze.Labelled("step", widget.MarkFail+why))
	case t.Whole != nil:
		of := table.Plural(t.Dispatches, "dispatch") + " of this kernel"
		lines = append(lines, analyze.Labelled("step", TurnsText(t.Whole)+" with "+of))
	}
	for i := range t.Outputs {
		lines = append(lines, analyze.Labelled("writes", rewrittenText(x, &t.Outputs[i])))
	}
	if g := t.Gap; g != nil {
		said := fmt.Sprintf("%s %.2g of the tolerance", widget.MarkOK, float64(g.Share))
		if !(g.Share <= 1) {
			said = widget.MarkFail + " " + g.Over()
		}
		said += fmt.Sprintf(" (%s)", g.Tolerance)
		if g.MaxAbs.Finite() {
			said += fmt.Sprintf("; max abs error %.3g", float64(g.MaxAbs))
		}
		lines = append(lines, analyze.Labelled("error", said))
	}
	if t.Alone != nil {
		lines = append(lines, "", "Isolated times come from back-to-back runs with warm caches; the times in tables come from the "+
			"dispatch inside its step. Compare isolated times only with isolated times.")
	}
	return lines
}

// WhichRun returns a text that names the steps of the trace that ran a kernel or an edited version of it.
func WhichRun(x *analyze.Index, kernel string) string {
	var steps []int
	for i := range x.Trace.Steps {
		s := &x.Trace.Steps[i]
		if slices.ContainsFunc(s.Dispatches, func(d trace.StepDispatch) bool {
			k := Own(x, x.Trace.Plans[d.Plan].Kernel)
			return k != nil && k.Name == kernel
		}) {
			steps = append(steps, s.Index)
		}
	}
	switch n := len(steps); n {
	case 0:
		return "no recorded step runs this kernel"
	case 1:
		return fmt.Sprintf("step %d runs it", steps[0])
	default:
		return fmt.Sprintf("%d other steps run this kernel, most recently step %d", n, steps[n-1])
	}
}

// TurnsText describes the measured times of a kernel and of its edited version, and their difference with its
// quartiles. It shows "=" for a difference that is not significant.
func TurnsText(t *session.InTurns) string {
	us := func(ns int64) string { return table.Micros(float64(ns)/1e3, 2) }
	g := &t.Gain
	largest := max(math.Abs(float64(g.Q1NS)), math.Abs(float64(g.Q3NS)))
	decimals := max(1, table.MicrosDecimals(float64(t.Own.NS)/1e3, 2))
	decimals = min(decimals, table.MicrosDecimals(largest/1e3, 2))
	less := func(ns int64) string { return fmt.Sprintf("%+.*f", decimals, -float64(ns)/1e3) }
	change := less(g.NS) + " µs"
	if !t.Told() {
		change = "="
	}
	return fmt.Sprintf("%s → %s µs: %s (%s to %s, n=%d)", us(t.Own.NS), us(t.New.NS), change, less(g.Q3NS),
		less(g.Q1NS), t.N)
}

// rewrittenText describes how an output of the edited kernel differs from the original kernel's output.
func rewrittenText(x *analyze.Index, w *session.Rewritten) string {
	name := x.Trace.Graph.Values[w.Value].Name
	if w.Differ == 0 {
		return fmt.Sprintf("%s: all %s equal those of the original kernel", name, table.Plural(w.Elements, "element"))
	}
	text := fmt.Sprintf("%s: %s of %s elements differ", name, table.Integer(w.Differ),
		table.Integer(w.Elements))
	if w.Unwritten > 0 {
		text += fmt.Sprintf(", of which %s were not written", table.Integer(w.Unwritten))
	}
	if !math.IsNaN(float64(w.MaxAbs)) {
		text += fmt.Sprintf(", by at most %.3g", float64(w.MaxAbs))
	}
	return text + fmt.Sprintf(": element %s is %.6g with the new source and %.6g with the original kernel",
		table.Integer(w.Element), float64(w.New), float64(w.Own))
}
