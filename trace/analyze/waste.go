package analyze

import (
	"math"

	"gpuscope/trace"
)

// Waste counts launched work that was not needed. It is exact because it is computed from plans. Launched is
// the number of all workgroups. Shape is the number of workgroups beyond what the shape of the step needs.
// Fold is the number of workgroups that were added because a one-dimensional count was folded into two
// dimensions. Lanes is the number of lanes in the workgroups with work, or 0 if the workgroup size is not
// known. Tail is the number of these lanes that are idle.
type Waste struct{ Shape, Fold, Launched, Tail, Lanes int64 }

// Product returns the number of workgroups of a grid, or of lanes of a workgroup.
func Product(v [3]int) int64 { return int64(v[0]) * int64(v[1]) * int64(v[2]) }

// WasteOf returns the waste of a plan. k is the plan's kernel, or nil if the trace does not describe it.
func WasteOf(p *trace.Plan, k *trace.Kernel) Waste {
	needed, launched := Product(p.NeededGrid), Product(p.Workgroups)
	w := Waste{Shape: launched - needed, Fold: needed - p.NeededGroups, Launched: launched, Tail: p.IdleLanes}
	if k != nil {
		w.Lanes = p.NeededGroups * Product(k.WorkgroupSize)
	}
	return w
}

// Groups returns the number of launched workgroups without work.
func (w Waste) Groups() int64 { return w.Shape + w.Fold }

// None reports whether no launched workgroup and no lane was without work.
func (w Waste) None() bool { return w.Shape == 0 && w.Fold == 0 && w.Tail == 0 }

// Plus returns the sum of two wastes.
func (w Waste) Plus(v Waste) Waste {
	return Waste{
		Shape: w.Shape + v.Shape, Fold: w.Fold + v.Fold, Launched: w.Launched + v.Launched,
		Tail: w.Tail + v.Tail, Lanes: w.Lanes + v.Lanes,
	}
}

// scaled returns the waste multiplied by a / b, in whole numbers. It converts the sum over several steps into
// the mean of a step.
func (w Waste) scaled(a, b int) Waste {
	s := func(n int64) int64 { return int64(math.Round(float64(n) * float64(a) / float64(b))) }
	return Waste{s(w.Shape), s(w.Fold), s(w.Launched), s(w.Tail), s(w.Lanes)}
}

// StaticTimes returns the GPU times of a step with dynamic grids (`then`, at the baseline) and with static
// grids (`now`). `name` says what both are: sums of isolated times, or GPU spans of untimed steps. Both are 0
// if neither kind was measured in both runs, or if the GPU clock differed.
func (t *DispatchTree) StaticTimes() (name string, then, now float64) {
	if t.Baseline == nil || t.Baseline.Index.Static() || t.ClockMoved {
		return "", 0, 0
	}
	if t.total > 0 && t.baseTotal > 0 {
		return SumName, t.baseTotal / float64(
				len(t.Baseline.Selection.Steps),
			), t.total / float64(
				len(t.Selection.Steps),
			)
	}
	dynamic, static := t.Baseline.Index.UntimedOf(t.Baseline.Selection), t.Index.UntimedOf(t.Selection)
	before, _ := dynamic.GPU.NS()
	after, _ := static.GPU.NS()
	return "GPU", float64(before), float64(after)
}

// Worst returns the row with the largest number of workgroups without work, and this number.
func (t *DispatchTree) Worst() (name string, groups int64) {
	for i := range t.Grouped {
		r := &t.Grouped[i]
		if n := r.Waste.Groups(); t.Single(i) && n > groups {
			name, groups = r.Label, n
		}
	}
	return name, groups
}

// InAStep returns the waste of a launch in one step: its total waste divided by the number of selected steps.
func (l *Launch) InAStep(steps int) Waste { return l.Waste.scaled(l.Runs, steps) }
