package trace

import "strings"

// PlanDiff lists the differences between two plans of a dispatch.
type PlanDiff struct {
	Grid, Route, Params bool
	Text                bool // the kernel's source was edited
	New, Gone           bool // New: the first plan is nil; Gone: the second plan is nil
}

// DiffPlans compares two plans of one dispatch. A nil plan means that the dispatch did not run.
func DiffPlans(from, to *Plan) PlanDiff {
	d := DiffLaunches(from, to)
	if from != nil && to != nil {
		d.Params, d.Text = from.Params != to.Params, from.Kernel != to.Kernel && !d.Route
	}
	return d
}

// DiffLaunches is like DiffPlans, but compares nothing but grids and routes, and is faster.
func DiffLaunches(from, to *Plan) PlanDiff {
	if from == nil || to == nil {
		return PlanDiff{New: from == nil && to != nil, Gone: from != nil && to == nil}
	}
	return PlanDiff{Grid: from.Workgroups != to.Workgroups, Route: from.Reroutes(to)}
}

// LaunchesOtherwise reports whether the grid or the route differs between two plans, or whether exactly one
// of the plans is nil.
func LaunchesOtherwise(a, b *Plan) bool { return DiffLaunches(a, b).Any() }

// Any reports whether anything differs.
func (d PlanDiff) Any() bool { return d != PlanDiff{} }

// Regrids reports whether the grid or the route differs, or whether exactly one of the two plans exists.
func (d PlanDiff) Regrids() bool { return d.Grid || d.Route || d.New || d.Gone }

// Or returns the union of two sets of differences.
func (d PlanDiff) Or(e PlanDiff) PlanDiff {
	return PlanDiff{
		Grid: d.Grid || e.Grid, Route: d.Route || e.Route, Params: d.Params || e.Params,
		Text: d.Text || e.Text, New: d.New || e.New, Gone: d.Gone || e.Gone,
	}
}

// String returns one character for each difference: "g" for the grid, "r" for the route, "k" for the kernel
// source, "p" for the params, "+" for a new dispatch and "-" for one that is gone.
func (d PlanDiff) String() string {
	var b strings.Builder
	for _, m := range []struct {
		on   bool
		mark byte
	}{{d.New, '+'}, {d.Gone, '-'}, {d.Grid, 'g'}, {d.Route, 'r'}, {d.Text, 'k'}, {d.Params, 'p'}} {
		if m.on {
			b.WriteByte(m.mark)
		}
	}
	return b.String()
}
