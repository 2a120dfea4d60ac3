package report

import (
	"fmt"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/table"
)

// percent formats part/whole as a percentage. It never rounds up to 100% and never rounds down to 0%.
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

// WasteLine describes the unnecessary workgroups and lanes in words.
func WasteLine(w analyze.Waste) string {
	if w.None() {
		return "no waste"
	}
	line := fmt.Sprintf("waste %s of %s not needed for this step's shape", table.Integer(w.Shape),
		table.Plural(w.Launched, "workgroup"))
	if w.Shape > 0 {
		line += " (" + percent(w.Shape, w.Launched) + ")"
	} else {
		line = "0 workgroups not needed for this step's shape"
	}
	if w.Fold > 0 {
		line += fmt.Sprintf(", %s only because the grid has two dimensions (%s)", table.Integer(w.Fold),
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

// wasteColumns returns the columns of unnecessary workgroups and lanes. In a run with static grids, the first
// column matters most, so every screen shows it.
func (t *DispatchTable) wasteColumns() (over table.Column, idle []table.Column) {
	cell := func(part, whole func(analyze.Waste) int64, none bool) func(*analyze.DispatchRow) table.Cell {
		return func(r *analyze.DispatchRow) table.Cell {
			n := part(r.Waste)
			if n == 0 && !none {
				return table.Cell{}
			}
			text := table.Integer(n)
			if of := percent(n, whole(r.Waste)); n > 0 && of != "" {
				text += " " + of
			}
			return table.Cell{Text: text, Number: float64(n), Has: true}
		}
	}
	ran := t.ran()
	launched := func(w analyze.Waste) int64 { return w.Launched }
	column := func(width int, name, title, unit, doc string, part, whole func(analyze.Waste) int64, none bool,
	) table.Column {
		return ran.WithHeat(ran.Cell(width, table.Exact, name, title, unit, doc, cell(part, whole, none)),
			func(r *analyze.DispatchRow) float64 {
				return float64(part(r.Waste)) / float64(max(1, whole(r.Waste)))
			})
	}
	needed := 200
	if t.Index.Static() {
		needed = 80
	}
	over = column(needed, "over_wg", "Σ not needed", "workgroups",
		"workgroups that the step's shape does not need, summed over all dispatches of the row, and their share of "+
			"all launched workgroups",
		func(w analyze.Waste) int64 { return w.Shape }, launched, t.Index.Static())
	return over, []table.Column{
		column(200, "fold_wg", "Σ folded wg", "workgroups",
			"workgroups launched only because the grid has two dimensions, and their share of all launched workgroups",
			func(w analyze.Waste) int64 { return w.Fold }, launched, false),
		column(200, "tail_lanes", "Σ idle lanes", "lanes",
			"lanes without work in workgroups that have work, and their share of the lanes of these workgroups",
			func(w analyze.Waste) int64 { return w.Tail },
			func(w analyze.Waste) int64 { return w.Lanes }, false),
	}
}

// wasteParts returns the title segments that sum up unnecessary work. In a run with static grids, the first
// segment says that the grids are static.
func (t *DispatchTable) wasteParts() []table.Segment {
	if t.Index.Trace.Engine != "" {
		return nil // the profile of another engine has only the grids that were launched
	}
	var all analyze.Waste
	tails := 0
	var plans []*trace.Plan
	for i := range t.Launches {
		plans = append(plans, t.Launches[i].Plan)
		if t.Launches[i].Waste.Tail > 0 {
			tails++
		}
		all = all.Plus(t.Launches[i].InAStep(len(t.Selection.Steps)))
	}
	n, static := all.Groups(), t.Index.Static()
	over := table.Say(6, "every workgroup is needed; dispatches with idle lanes: %d", tails)
	if n > 0 || static {
		over = table.Say(1, "%s of %s not needed", table.Integer(n), table.Plural(all.Launched, "workgroup"))
		over.Short = "0 not needed"
	}
	if n > 0 {
		over.Text += " (" + percent(n, all.Launched) + ")"
		over.Short = percent(n, all.Launched) + " not needed"
	}
	chosen := table.Say(2, "%s", t.loads.Waste(plans))
	if n == 0 && chosen.Text != "" {
		over.Text = "" // the grid fits the shape, but not the choice of the router
	}
	if !static {
		return []table.Segment{over, chosen}
	}
	if n > 0 {
		over.Rank = 0 // a run with static grids is made to find unnecessary work
	}
	parts := []table.Segment{
		{Rank: 0, Text: analyze.StaticMark + ": largest grids", Short: analyze.StaticMark},
		over, chosen,
	}
	if worst, n := t.Worst(); n > 0 {
		parts = append(parts, table.Say(2, "the most in %s: %s", worst, table.Integer(n)))
	}
	if name, then, now := t.StaticTimes(); then > 0 && now > 0 {
		parts = append(parts, table.Say(1, "%s %s → %s (%.1f× the dynamic baseline)", name,
			table.MillisBare(analyze.Whole(then), true), table.Millis(analyze.Whole(now), true), now/then))
	}
	return parts
}
