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

// TriedVerdict returns the verdict on an edited kernel in one line, and the paint of the line. A sign and a
// word at the start of the line say the same as the paint.
func TriedVerdict(x *analyze.Index, t *session.Tried) (line string, p widget.Paint) {
	w := t.Whole
	switch v := t.Verdict(); v {
	case session.VerdictFaster:
		return fmt.Sprintf("%s %s by %s", widget.MarkOK, v, gainText(w)), widget.Good
	case session.VerdictSlower:
		return fmt.Sprintf("%s %s by %s", widget.MarkWarn, v, gainText(w)), widget.Warn
	case session.VerdictWrong:
		return fmt.Sprintf("%s %s: %s", widget.MarkFail, v, wrongText(x, t)), widget.Bad
	case session.VerdictEqual:
		if w.N < session.FewestTurns {
			return fmt.Sprintf("= no difference is significant after %s; a verdict needs %d",
				table.Plural(w.N, "round"), session.FewestTurns), widget.Strong
		}
		return fmt.Sprintf("= equal within ± %.*f µs per step (%s)", decimalsOf(w),
			float64(w.Within())/1e3, percent(w.Within(), w.Own.NS)), widget.Strong
	}
	why := "this device has no timestamps"
	if t.Dispatch == nil {
		why = fmt.Sprintf("step %d does not run %s", t.Step, t.Kernel)
	}
	return fmt.Sprintf("%s not measured: %s", widget.MarkWarn, why), widget.Warn
}

// gainText describes by how much the time of the step differs: "12.3 µs ± 1.1 per step (-8.0 %)".
func gainText(w *session.InTurns) string {
	d := decimalsOf(w)
	sign, ns := "-", w.Gain.NS
	if ns < 0 {
		sign, ns = "+", -ns
	}
	return fmt.Sprintf("%.*f µs ± %.*f per step (%s%s)", d, float64(ns)/1e3, d, float64(w.Within())/1e3, sign,
		percent(ns, w.Own.NS))
}

// percent formats a part of a time in percent.
func percent(part, of int64) string {
	share := 100 * float64(part) / float64(max(of, 1))
	if share >= 9.95 {
		return fmt.Sprintf("%.0f %%", share)
	}
	return fmt.Sprintf("%.1f %%", share)
}

// wrongText says why an edited kernel is wrong. If its error is too large, wrongText names the element with
// the largest error.
func wrongText(x *analyze.Index, t *session.Tried) string {
	g := t.Gap
	if t.Stray || g == nil || g.Share <= 1 {
		return t.Wrong()
	}
	at := fmt.Sprintf("element %s", table.Integer(g.Element))
	if g.Value != nil && int(*g.Value) < len(x.Trace.Graph.Values) {
		at += " of " + x.Trace.Graph.Values[*g.Value].Name
	}
	if !g.Got.Finite() {
		return fmt.Sprintf("%v at %s, reference %.6g", float64(g.Got), at, float64(g.Want))
	}
	return fmt.Sprintf("largest error %.3g at %s, %s", math.Abs(float64(g.Got-g.Want)), at, g.Over())
}

// TriedLines returns lines that describe the result of running an edited kernel in detail. Callers show
// them below the verdict.
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
	g, decimals := &t.Gain, decimalsOf(t)
	less := func(ns int64) string { return fmt.Sprintf("%+.*f", decimals, -float64(ns)/1e3) }
	change := less(g.NS) + " µs"
	if !t.Told() {
		change = "="
	}
	return fmt.Sprintf("%s → %s µs: %s (%s to %s, n=%d)", us(t.Own.NS), us(t.New.NS), change, less(g.Q3NS),
		less(g.Q1NS), t.N)
}

// decimalsOf returns how many decimals the gain in µs has: no more than the times and the quartiles have.
func decimalsOf(t *session.InTurns) int {
	largest := max(math.Abs(float64(t.Gain.Q1NS)), math.Abs(float64(t.Gain.Q3NS)))
	decimals := max(1, table.MicrosDecimals(float64(t.Own.NS)/1e3, 2))
	return min(decimals, table.MicrosDecimals(largest/1e3, 2))
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
