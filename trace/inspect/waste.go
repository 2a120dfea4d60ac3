package inspect

import (
	"fmt"
	"math"

	"gpuscope/trace"
	"gpuscope/trace/table"
)

// Waste is work that was launched and not needed, exact from the plan. Workgroups: Shape were launched beyond
// the live shape's need, Fold by folding a count into two dimensions, of Launched in all. Lanes: Tail idle of
// the Lanes in workgroups that have work; Lanes is 0 where the workgroup's size is not known.
type Waste struct{ Shape, Fold, Launched, Tail, Lanes int64 }

func product(v [3]int) int64 { return int64(v[0]) * int64(v[1]) * int64(v[2]) }

// WasteOf is the waste of a plan that runs a kernel, nil where that is not known.
func WasteOf(p *trace.Plan, k *trace.Kernel) Waste {
	needed, launched := product(p.NeededGrid), product(p.Workgroups)
	w := Waste{Shape: launched - needed, Fold: needed - p.NeededGroups, Launched: launched, Tail: p.IdleLanes}
	if k != nil {
		w.Lanes = p.NeededGroups * product(k.WorkgroupSize)
	}
	return w
}

// Groups are the workgroups that were launched and have no work.
func (w Waste) Groups() int64 { return w.Shape + w.Fold }

// none says that nothing was launched that was not needed.
func (w Waste) none() bool { return w.Shape == 0 && w.Fold == 0 && w.Tail == 0 }

// plus is the waste of both.
func (w Waste) plus(v Waste) Waste {
	return Waste{
		Shape: w.Shape + v.Shape, Fold: w.Fold + v.Fold, Launched: w.Launched + v.Launched,
		Tail: w.Tail + v.Tail, Lanes: w.Lanes + v.Lanes,
	}
}

// scaled is the waste times a / b, to the nearest: of a step where it was summed over several.
func (w Waste) scaled(a, b int) Waste {
	s := func(n int64) int64 { return int64(math.Round(float64(n) * float64(a) / float64(b))) }
	return Waste{s(w.Shape), s(w.Fold), s(w.Launched), s(w.Tail), s(w.Lanes)}
}

// percent is a part of a whole, with a decimal that is not rounded up to the whole.
func percent(part, whole int64) string {
	switch share := 100 * float64(part) / float64(whole); {
	case whole <= 0:
		return ""
	case part < whole && share >= 99.95:
		return ">99.9%"
	case part > 0 && share < 0.05:
		return "<0.1%"
	case part == whole:
		return "100%"
	default:
		return fmt.Sprintf("%.1f%%", share)
	}
}

// Line says in words what was not needed, each with its unit.
func (w Waste) Line() string {
	if w.none() {
		return "waste none"
	}
	line := fmt.Sprintf("waste %s of %s beyond the live shape", table.Integer(w.Shape),
		table.Plural(w.Launched, "workgroup"))
	if w.Shape > 0 {
		line += " (" + percent(w.Shape, w.Launched) + ")"
	} else {
		line = "waste no workgroups beyond the live shape"
	}
	if w.Fold > 0 {
		line += fmt.Sprintf(", %s by folding the grid (%s)", table.Integer(w.Fold),
			percent(w.Fold, w.Launched))
	}
	switch {
	case w.Tail > 0 && w.Lanes > 0:
		line += fmt.Sprintf(", %s of %s idle (%s)", table.Integer(w.Tail), table.Plural(w.Lanes, "lane"),
			percent(w.Tail, w.Lanes))
	case w.Tail > 0:
		line += fmt.Sprintf(", %s idle", table.Plural(w.Tail, "lane"))
	}
	return line
}

// wasteColumns are the columns of what was launched and not needed. A run with pinned grids is about the
// first of them.
func (t *DispatchTable) wasteColumns() []table.Column {
	cell := func(part, whole func(Waste) int64, none bool) func(int) table.Cell {
		return t.ran(func(r *DispatchRow) table.Cell {
			n := part(r.Waste)
			if n == 0 && !none {
				return table.Cell{}
			}
			text := table.Integer(n)
			if of := percent(n, whole(r.Waste)); n > 0 && of != "" {
				text += " " + of
			}
			return table.Cell{Text: text, Number: float64(n), Has: true}
		})
	}
	launched := func(w Waste) int64 { return w.Launched }
	beyond := table.Column{
		Name: "over_wg", Title: "Σ not needed", Unit: "workgroups", Is: table.Exact, Right: true, Width: 200,
		Doc: "workgroups of all dispatches of the row launched beyond what the live shape needs, and their part of " +
			"the grids",
		Of: cell(func(w Waste) int64 { return w.Shape }, launched, t.Index.Static()),
	}
	if t.Index.Static() {
		beyond.Width = 80
	}
	return []table.Column{
		beyond,
		{
			Name: "fold_wg", Title: "Σ folded wg", Unit: "workgroups", Is: table.Exact, Right: true,
			Width: 200,
			Doc:   "workgroups launched because a count was folded into two dimensions, and their part of the grid",
			Of:    cell(func(w Waste) int64 { return w.Fold }, launched, false),
		},
		{
			Name: "tail_lanes", Title: "Σ idle lanes", Unit: "lanes", Is: table.Exact, Right: true,
			Width: 200,
			Doc:   "lanes without work in workgroups that have some, and their part of those",
			Of:    cell(func(w Waste) int64 { return w.Tail }, func(w Waste) int64 { return w.Lanes }, false),
		},
	}
}

// wasteParts sum up what was launched and not needed. Where that is something it is not lost from a title,
// and a run with pinned grids is named first of all.
func (t *DispatchTable) wasteParts() []table.Part {
	var all Waste
	tails := 0
	for i := range t.Launches {
		if t.Launches[i].Waste.Tail > 0 {
			tails++
		}
		all = all.plus(t.Launches[i].inAStep(len(t.Scope.Steps)))
	}
	n, static := all.Groups(), t.Index.Static()
	over := table.Say(6, "every workgroup is needed, idle lanes in %d", tails)
	if n > 0 || static {
		over = table.Say(1, "%s of %s not needed", table.Integer(n), table.Plural(all.Launched, "workgroup"))
		over.Short = "0 not needed"
	}
	if n > 0 {
		over.Text += " (" + percent(n, all.Launched) + ")"
		over.Short = percent(n, all.Launched) + " not needed"
	}
	if !static {
		return []table.Part{over}
	}
	if n > 0 {
		over.Rank = 0 // it is what such a run is for
	}
	parts := []table.Part{{Rank: 0, Text: StaticMark + ": largest grids", Short: StaticMark}, over}
	if worst, n := t.worst(); n > 0 {
		parts = append(parts, table.Say(2, "most: %s %s", worst, table.Integer(n)))
	}
	if name, then, now := t.staticTimes(); then > 0 && now > 0 {
		parts = append(parts, table.Say(1, "%s %s → %s (%.1f× the dynamic base)", name,
			table.MillisBare(whole(then), true), table.Millis(whole(now), true), now/then))
	}
	return parts
}

// staticTimes are what a step takes the GPU with dynamic grids, at the base, and with the largest: by the
// sums of what was timed alone, or by the spans of untimed steps. They are 0 where there is nothing of one
// kind on both sides, or the clock has moved.
func (t *DispatchTree) staticTimes() (name string, then, now float64) {
	if t.Base == nil || t.Base.Index.Static() || t.ClockMoved {
		return "", 0, 0
	}
	if t.total > 0 && t.baseTotal > 0 {
		return sumName, t.baseTotal / float64(len(t.Base.Scope.Steps)), t.total / float64(len(t.Scope.Steps))
	}
	dynamic, static := t.Base.Index.UntimedOf(t.Base.Scope), t.Index.UntimedOf(t.Scope)
	before, _ := dynamic.GPU.NS()
	after, _ := static.GPU.NS()
	return "GPU", float64(before), float64(after)
}

// worst is the row with the most workgroups that were not needed.
func (t *DispatchTree) worst() (name string, groups int64) {
	for i := range t.Folded {
		r := &t.Folded[i]
		if n := r.Waste.Groups(); t.single(i) && n > groups {
			name, groups = r.Label, n
		}
	}
	return name, groups
}

// inAStep is what a launch wasted in a step of a scope, on the average of all steps.
func (l *Launch) inAStep(steps int) Waste { return l.Waste.scaled(l.Runs, steps) }
