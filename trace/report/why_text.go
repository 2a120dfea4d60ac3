package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gpuscope/internal/printable"
	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/why"
	"gpuscope/trace/report/expertload"
	"gpuscope/trace/table"
)

// WhyLines explains the grid of a dispatch in words: the grid, its arithmetic, and the chain of changes
// back to the inputs. If `closed` is not empty, the links of a chain with several operators are left out, and
// the line of the chain ends with `closed`, which tells the user how to show the links.
func WhyLines(w *why.Why, closed string) []string {
	x := w.Index
	lines := []string{w.Name + "  " + heading(w)}
	if x.Trace.Engine != "" {
		lines[0] += ", as the profile of " + printable.Clean(x.Trace.Engine) + " has it"
		return append(lines, "  the profile contains neither shapes nor what changed, so the reason is unknown")
	}
	if w.Plan != nil {
		lines = append(lines, "  "+planText(w.Plan))
		for _, line := range expertload.Lines(x, w.At, w.Plan) {
			lines = append(lines, "  "+line)
		}
	}
	if w.Grid != nil {
		if w.Grid.From != nil {
			lines = append(lines, "  before: "+planText(w.Grid.From))
		}
		if instead := insteadText(x, w.Grid, w.ID); instead != "" {
			lines = append(lines, "  replaced by: "+instead)
		}
		lines = append(lines, originLines(x, w.Grid, closed)...)
	}
	if w.Params != nil && (w.Grid == nil || w.Params.At != w.Grid.At) {
		lines = append(lines, paramsLine(x, w.Params))
	}
	if e := w.Ends; e != nil {
		line := "  no longer launched since " + at(e.Step)
		if instead := insteadText(x, e, w.ID); instead != "" {
			line += "; replaced by: " + instead
		}
		lines = append(lines, line)
	}
	lines = append(lines, changesLine(w))
	if next := NextChange(x, w.At, w.ID); next != "" {
		lines = append(lines, "  next change: "+next)
	}
	if last := LastChange(x, w.At, w.ID); last != "" {
		lines = append(lines, "  last change: "+last)
	}
	return lines
}

// heading describes the grid and names the step in which the dispatch got it, or the step since which the
// dispatch has not run.
func heading(w *why.Why) string {
	t := w.Index.Trace
	start := "the graph was built"
	if t.DroppedSteps > 0 {
		start = "before the first recorded step"
	}
	g := w.Grid
	switch {
	case w.Plan == nil && g == nil:
		return fmt.Sprintf("not launched in %s or before", at(w.Step))
	case w.Index.Trace.Engine != "" && w.Plan != nil:
		return fmt.Sprintf("grid %s, kernel %s", table.Grid(w.Plan.Workgroups), w.Plan.Kernel)
	case w.Plan == nil:
		return fmt.Sprintf("not launched since %s; ran in %s", at(g.Step), ran(w, g.At))
	case g == nil:
		return fmt.Sprintf("grid %s, kernel %s, unchanged since %s", table.Grid(w.Plan.Workgroups),
			w.Plan.Kernel, start)
	case g.From == nil:
		return fmt.Sprintf("grid %s, launched since %s", table.Grid(w.Plan.Workgroups), at(g.Step))
	case g.From.Workgroups == g.To.Workgroups:
		return fmt.Sprintf("grid %s, route changed at %s", table.Grid(w.Plan.Workgroups), at(g.Step))
	}
	return fmt.Sprintf("grid %s → %s at %s", table.Grid(g.From.Workgroups), table.Grid(g.To.Workgroups),
		at(g.Step))
}

// ran returns the name of the last steps, before the step with index `until`, in which a dispatch ran: "s0",
// "s3–s5".
func ran(w *why.Why, until int) string {
	t := w.Index.Trace
	first := 0
	for _, i := range w.Changes {
		if c, _ := analyze.NetPlan(t, &t.Steps[i], w.ID); i < until && c.Diff.New {
			first = i
		}
	}
	if first >= until { // the dispatch did not run in the first recorded step either
		return "no step of this recording"
	}
	return w.Index.Range(first, until-1).Name
}

// insteadText names the dispatches that replace a dispatch that is no longer launched. It uses their names
// within the layer and adds their routes: "attn.q, attn.k, attn.v (route gemv: M = 1)".
func insteadText(x *analyze.Index, o *why.Origin, id trace.DispatchID) string {
	g := &x.Trace.Graph
	var said []string
	for i, p := range o.Instead {
		name := analyze.Within(x.Name(p.Dispatch), &g.Ops[g.Dispatches[id].Op])
		if i+1 == len(o.Instead) || RouteText(o.Instead[i+1]) != RouteText(p) {
			name += " (route " + cmp.Or(RouteText(p), p.Kernel) + ")"
		}
		said = append(said, name)
	}
	return strings.Join(said, ", ")
}

// at returns the name of a step with its phase and position: "s3 (decode, position 57)".
func at(s *trace.Step) string {
	return fmt.Sprintf("s%d (%s, position %d)", s.Index, s.Phase, s.Position)
}

// planText describes a plan: its grid with the arithmetic, and its route.
func planText(p *trace.Plan) string {
	parts := []string{LaunchArithmetic(p)}
	if parts[0] == "" {
		parts[0] = table.Grid(p.Workgroups)
	}
	if route := RouteText(p); route != "" {
		parts = append(parts, "route "+route)
	}
	return strings.Join(append(parts, "kernel "+p.Kernel), " · ")
}

// RouteText returns a plan's route and the reason for it.
func RouteText(p *trace.Plan) string {
	return strings.TrimSuffix(strings.TrimPrefix(p.Route+": "+p.Reason, ": "), ": ")
}

func originLines(x *analyze.Index, o *why.Origin, closed string) []string {
	var lines []string
	name := func(v trace.ValueID) string { return x.Trace.Graph.Values[v].Name }
	for _, c := range o.Causes {
		what := ""
		if len(c.Terms) > 0 {
			what = strings.Join(c.Terms, ", ") + " ← "
		}
		line := fmt.Sprintf("  %s%s %s", what, name(c.Input), changeText(c.From, c.To))
		folded := why.GroupLinks(c.Links)
		folds := closed != "" && c.Groups()
		more := ""
		if folds {
			more = closed
		}
		if through := through(x, folded, more); through != "" {
			line += ", through " + through
		}
		if lines = append(lines, line); folds {
			continue
		}
		for _, l := range folded {
			lines = append(lines, "    "+linkText(x, l))
		}
	}
	for _, other := range o.Others {
		effect, but := "changed params of", ", but did not change this grid"
		if !other.Params {
			effect = "re-planned"
		}
		if other.Unsure {
			but = ""
		}
		lines = append(lines, fmt.Sprintf("  %s %s %s %s%s", name(other.Input),
			changeText(other.From, other.To), effect, shortOps(x, other.Ops), but))
	}
	return lines
}

// paramsLine describes the last change of the params and its cause.
func paramsLine(x *analyze.Index, o *why.Origin) string {
	line := "  params since " + at(o.Step)
	if o.From != nil {
		line += ": " + planChange(x, trace.PlanChange{From: &o.From.ID, To: &o.To.ID})
	}
	var by []string
	for _, c := range o.Causes {
		by = append(by, x.Trace.Graph.Values[c.Input].Name+" "+changeText(c.From, c.To))
	}
	if by != nil {
		line += " ← " + strings.Join(by, ", ")
	}
	return line
}

// changesLine lists the steps in which the grid changed, before and after the displayed step.
func changesLine(w *why.Why) string {
	steps := w.Index.Trace.Steps
	var before, after []string
	for _, i := range w.Changes {
		name := fmt.Sprintf("s%d", steps[i].Index)
		switch {
		case w.Grid != nil && i == w.Grid.At:
		case steps[i].Index <= w.Step.Index:
			before = append(before, name)
		default:
			after = append(after, name)
		}
	}
	also := "also "
	if w.Grid == nil {
		also = ""
	}
	never := w.Grid == nil && w.Plan == nil
	switch {
	case never && after == nil:
		return "  never launched in this run"
	case never:
		return "  launched in this run from " + after[0] + " on"
	case before != nil || after != nil:
	case also == "":
		return "  this grid never changed in this run"
	default:
		return "  this grid changed at no other step of this run"
	}
	const some = 3
	if len(before) > some {
		before = append([]string{"…"}, before[len(before)-some:]...)
	}
	if len(after) > some {
		after = append(after[:some:some], "…")
	}
	var said []string
	if before != nil {
		said = append(said, "earlier at "+strings.Join(before, ", "))
	}
	if after != nil {
		said = append(said, "later at "+strings.Join(after, ", "))
	}
	return "  in this run, this grid " + also + "changed " + strings.Join(said, ", ")
}

// through returns the names of the operators between an input and a dispatch. If an operator occurs in
// several layers, its name appears once. The remark `more` follows the names, in parentheses.
func through(x *analyze.Index, links []why.LayersLink, more string) string {
	var names []string
	layers := 0
	for i := len(links) - 1; i > 0; i-- { // link 0 is the dispatch's own operator, which is not named
		name := links[i].Op.Place()
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
		layers = max(layers, len(links[i].Layers))
	}
	said, aside := strings.Join(names, ", "), more
	if layers > 1 {
		aside = strings.TrimSuffix(fmt.Sprintf("the same in %d layers; %s", layers, more), "; ")
	}
	if aside != "" {
		said += " (" + aside + ")"
	}
	return said
}

// shortOps lists the distinct names of operators within their layers.
func shortOps(x *analyze.Index, ops []trace.OpID) string {
	var names []string
	for _, id := range ops {
		if n := x.Trace.Graph.Ops[id].ShortName(); !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	if len(names) > 4 {
		names = append(names[:3:3], fmt.Sprintf("%d others", len(names)-3))
	}
	return strings.Join(names, ", ")
}

// changeText formats a change: "1×42 → 1×1". It returns only the new shape if the old one is not known. A
// value that the step does not compute has the shape "–".
func changeText(from, to []int) string {
	after := cmp.Or(table.Shape(to), "–")
	if from == nil {
		return after
	}
	return table.Shape(from) + " → " + after
}

func linkText(x *analyze.Index, l why.LayersLink) string {
	s := fmt.Sprintf("%s ← %s %s", l.Op.Name, x.Trace.Graph.Values[l.Value].Name, changeText(l.From, l.To))
	if len(l.Layers) > 0 {
		s += fmt.Sprintf(" (the same in layers %s)", printable.Ranges(l.Layers))
	}
	return s
}
