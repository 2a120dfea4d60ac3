package analyze

import (
	"math"

	"gpuscope/trace"
)

// Waste is work that was launched and not needed, exact from the plan. Workgroups: Shape were launched beyond
// the live shape's need, Fold by folding a count into two dimensions, of Launched in all. Lanes: Tail idle of
// the Lanes in workgroups that have work; Lanes is 0 where the workgroup's size is not known.
type Waste struct{ Shape, Fold, Launched, Tail, Lanes int64 }

// Product is the number of workgroups of a grid.
func Product(v [3]int) int64 { return int64(v[0]) * int64(v[1]) * int64(v[2]) }

// WasteOf is the waste of a plan that runs a kernel, nil where that is not known.
func WasteOf(p *trace.Plan, k *trace.Kernel) Waste {
	needed, launched := Product(p.NeededGrid), Product(p.Workgroups)
	w := Waste{Shape: launched - needed, Fold: needed - p.NeededGroups, Launched: launched, Tail: p.IdleLanes}
	if k != nil {
		w.Lanes = p.NeededGroups * Product(k.WorkgroupSize)
	}
	return w
}

// Groups are the workgroups that were launched and have no work.
func (w Waste) Groups() int64 { return w.Shape + w.Fold }

// None reports that nothing was launched that was not needed.
func (w Waste) None() bool { return w.Shape == 0 && w.Fold == 0 && w.Tail == 0 }

// Plus is the waste of both.
func (w Waste) Plus(v Waste) Waste {
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

// StaticTimes are what a step takes the GPU with dynamic grids, at the baseline, and with the largest: by the
// sums of what was timed in isolation, or by the spans of untimed steps. They are 0 where there is nothing of
// one kind on both sides, or the clock has moved.
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

// Worst is the row with the most workgroups that were not needed.
func (t *DispatchTree) Worst() (name string, groups int64) {
	for i := range t.Grouped {
		r := &t.Grouped[i]
		if n := r.Waste.Groups(); t.Single(i) && n > groups {
			name, groups = r.Label, n
		}
	}
	return name, groups
}

// InAStep is what a launch wasted in a step of a selection, on the average of all steps.
func (l *Launch) InAStep(steps int) Waste { return l.Waste.scaled(l.Runs, steps) }
