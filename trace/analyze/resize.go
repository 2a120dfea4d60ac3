package analyze

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gpuscope/trace"
)

// EachPlanChange calls f for each plan change in the shape propagation of a step, in order.
func EachPlanChange(s *trace.Step, f func(*trace.Hook, trace.PlanChange)) {
	for i := range s.Resize.Passes {
		for j := range s.Resize.Passes[i].Hooks {
			h := &s.Resize.Passes[i].Hooks[j]
			for _, c := range h.Plans {
				if c.From != nil || c.To != nil {
					f(h, c)
				}
			}
		}
	}
}

// PlanOf returns the plan with an id, or nil if the id is nil.
func PlanOf(t *trace.Trace, id *trace.PlanID) *trace.Plan {
	if id == nil {
		return nil
	}
	return &t.Plans[*id]
}

// Changed returns the dispatch whose plan was changed by c. At least one of c.From and c.To must not be nil.
func Changed(t *trace.Trace, c trace.PlanChange) trace.DispatchID {
	if p := PlanOf(t, c.To); p != nil {
		return p.Dispatch
	}
	return PlanOf(t, c.From).Dispatch
}

// ResizeSummary counts what the shape propagation of a step did.
type ResizeSummary struct {
	Order                     string
	Time                      trace.Time
	Passes, Hooks             int
	Operators                 int // number of different operators that were planned
	Values                    int // number of changes of values
	Noops, Glitches, Deferred int // numbers of hooks with these outcomes
	// Grids, Routes, Params, New and Gone are numbers of dispatches. Grids, for example, is the number of
	// dispatches whose grid differs from that in the previous step. A dispatch is counted once, even if
	// several passes planned it.
	Grids, Routes, Params, New, Gone int
	// SameAs is the Index of the previous step if that step planned the same operators and changed the same
	// kinds of things. Otherwise it is -1.
	SameAs int
}

// Resize returns the summary of the shape propagation of a step.
func (x *Index) Resize(step int) *ResizeSummary { return x.Summed(context.Background(), step) }

// Summed is Resize with a context. If the context is cancelled, Summed does not compare the step with the
// previous step.
func (x *Index) Summed(ctx context.Context, step int) *ResizeSummary {
	t := x.Trace
	s := &t.Steps[step]
	r := &ResizeSummary{Order: s.Resize.Order, Time: s.Resize.NS, Passes: len(s.Resize.Passes), SameAs: -1}
	ops := map[trace.OpID]bool{}
	for i := range s.Resize.Passes {
		for _, h := range s.Resize.Passes[i].Hooks {
			ops[h.Op] = true
			r.Hooks++
			r.Values += len(h.Changed)
			for _, c := range []struct {
				on bool
				n  *int
			}{{h.Noop, &r.Noops}, {h.Glitch, &r.Glitches}, {h.Deferred, &r.Deferred}} {
				if c.on {
					*c.n++
				}
			}
		}
	}
	r.Operators = len(ops)
	for _, n := range NetPlans(t, s) {
		for _, c := range []struct {
			on bool
			n  *int
		}{
			{n.Diff.Grid, &r.Grids},
			{n.Diff.Route, &r.Routes},
			{n.Diff.Params, &r.Params},
			{n.Diff.New, &r.New},
			{n.Diff.Gone, &r.Gone},
		} {
			if c.on {
				*c.n++
			}
		}
	}
	if step > 0 && r.Hooks > 0 && slices.Equal(HookShapes(ctx, t, step), HookShapes(ctx, t, step-1)) {
		r.SameAs = t.Steps[step-1].Index
	}
	return r
}

// HookShapes returns a text for each hook of a step. The text names the operator and the kinds of things that
// the hook changed. It contains no dims and no counts, so that texts of different steps can be compared.
func HookShapes(ctx context.Context, t *trace.Trace, step int) []string {
	var shapes []string
	for i := range t.Steps[step].Resize.Passes {
		for j := range t.Steps[step].Resize.Passes[i].Hooks {
			if j%1024 == 0 && ctx.Err() != nil {
				return nil // the caller checks ctx too and ignores the result
			}
			h := &t.Steps[step].Resize.Passes[i].Hooks[j]
			shapes = append(shapes, fmt.Sprint(i, " ", HookShape(t, h)))
		}
	}
	return shapes
}

// HookShape returns a text for a run of a hook. Two runs have the same text if they changed the same kinds of
// things.
func HookShape(t *trace.Trace, h *trace.Hook) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %v %v %v", h.Op, h.Noop, h.Glitch, h.Deferred)
	for _, c := range h.Changed {
		fmt.Fprintf(&b, " v%d", c.Value)
	}
	for _, c := range h.Plans {
		if c.From != nil || c.To != nil {
			fmt.Fprintf(&b, " %d%v", Changed(t, c), trace.DiffPlans(PlanOf(t, c.From), PlanOf(t, c.To)))
		}
	}
	return b.String()
}

// Touches returns the values that a dispatch reads and the values that it writes if it runs with plan p.
func (x *Index) Touches(p *trace.Plan) (reads, writes []trace.ValueID) {
	d := &x.Trace.Graph.Dispatches[p.Dispatch]
	bound := x.Trace.BoundTo(p)
	if bound == nil {
		return d.Reads, d.Writes
	}
	free := func(v trace.ValueID) bool { return !slices.Contains(bound, v) }
	return slices.DeleteFunc(slices.Clone(d.Reads), free), slices.DeleteFunc(slices.Clone(d.Writes), free)
}

// Elements returns the number of elements of a shape.
func Elements(dims []int) float64 {
	n := 1.0
	for _, d := range dims {
		n *= float64(d)
	}
	return n
}

// NetPlans returns the dispatches whose plan is different after the step. Each of them is in the list once.
// If one pass changed a plan and a later pass restored it, the dispatch is not in the list.
func NetPlans(t *trace.Trace, s *trace.Step) []PlannedChange {
	var list []PlannedChange
	at := map[trace.DispatchID]int{}
	EachPlanChange(s, func(h *trace.Hook, c trace.PlanChange) {
		id := Changed(t, c)
		if i, seen := at[id]; seen {
			list[i].To, list[i].Op = c.To, h.Op
			return
		}
		at[id] = len(list)
		list = append(list, PlannedChange{Op: h.Op, PlanChange: c})
	})
	for i := range list {
		list[i].Diff = trace.DiffPlans(PlanOf(t, list[i].From), PlanOf(t, list[i].To))
	}
	return slices.DeleteFunc(list, func(c PlannedChange) bool { return !c.Diff.Any() })
}

// NetPlan returns how the plan of one dispatch after a step differs from its plan before the step. The bool
// is false if the plan is the same.
func NetPlan(t *trace.Trace, s *trace.Step, id trace.DispatchID) (PlannedChange, bool) {
	var c PlannedChange
	found := false
	EachPlanChange(s, func(h *trace.Hook, one trace.PlanChange) {
		if Changed(t, one) != id {
			return
		}
		if !found {
			c.PlanChange = one
		}
		c.To, c.Op, found = one.To, h.Op, true
	})
	c.Diff = trace.DiffPlans(PlanOf(t, c.From), PlanOf(t, c.To))
	return c, found && c.Diff.Any()
}

// PlannedChange is a change of the plan of a dispatch by a step: the plan before the step and the plan in the
// step.
type PlannedChange struct {
	Op   trace.OpID
	Diff trace.PlanDiff
	trace.PlanChange
}
