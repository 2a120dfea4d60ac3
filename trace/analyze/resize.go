package analyze

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gpuscope/trace"
)

// EachPlanChange calls f for every change of a plan in a step's shape propagation, in order.
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

// Changed returns the dispatch whose plan a change is about. At least one of c.From and c.To must be set.
func Changed(t *trace.Trace, c trace.PlanChange) trace.DispatchID {
	if p := PlanOf(t, c.To); p != nil {
		return p.Dispatch
	}
	return PlanOf(t, c.From).Dispatch
}

// ResizeSummary counts what a step's shape propagation did.
type ResizeSummary struct {
	Order                     string
	Time                      trace.Time
	Passes, Hooks             int
	Operators                 int // distinct operators that were planned
	Values                    int // number of changes of values
	Noops, Glitches, Deferred int // number of hooks of each kind
	// Grids, Routes, Params, New and Gone are the numbers of dispatches whose plans differ from the
	// previous step. A dispatch counts once, even if several passes planned it.
	Grids, Routes, Params, New, Gone int
	// SameAs is the Index of the previous step if its propagation planned the same operators and changed
	// the same kinds of things, else -1.
	SameAs int
}

// Resize computes the summary of a step's shape propagation.
func (x *Index) Resize(step int) *ResizeSummary { return x.Summed(context.Background(), step) }

// Summed computes the same summary as Resize, but accepts a context. When the context ends, Summed stops
// comparing with the previous step.
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

// HookShapes describes each hook of a step by the operator and by the kinds of things that the hook changed.
// The texts contain no dims or counts, so they can be compared between steps.
func HookShapes(ctx context.Context, t *trace.Trace, step int) []string {
	var shapes []string
	for i := range t.Steps[step].Resize.Passes {
		for j := range t.Steps[step].Resize.Passes[i].Hooks {
			if j%1024 == 0 && ctx.Err() != nil {
				return nil // the caller checks ctx and discards the result
			}
			h := &t.Steps[step].Resize.Passes[i].Hooks[j]
			shapes = append(shapes, fmt.Sprint(i, " ", HookShape(t, h)))
		}
	}
	return shapes
}

// HookShape returns equal texts for two runs of a hook that changed the same kinds of things.
func HookShape(t *trace.Trace, h *trace.Hook) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %v %v %v", h.Op, h.Noop, h.Glitch, h.Deferred)
	for _, c := range h.Changed {
		fmt.Fprintf(&b, " v%d", c.Value)
	}
	for _, c := range h.Plans {
		if c.From != nil || c.To != nil {
			fmt.Fprintf(&b, " %d%v", Changed(t, c), DiffPlans(PlanOf(t, c.From), PlanOf(t, c.To)))
		}
	}
	return b.String()
}

// Touches returns the values that a dispatch reads and writes when it runs the kernel of plan p.
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

// NetPlans returns the dispatches whose plan after the step differs from their plan before it. Each is listed
// once. A plan that one pass changed and a later pass restored is not included.
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
		list[i].Diff = DiffPlans(PlanOf(t, list[i].From), PlanOf(t, list[i].To))
	}
	return slices.DeleteFunc(list, func(c PlannedChange) bool { return !c.Diff.Any() })
}

// NetPlan returns the net change of one dispatch's plan in a step, and false if the plan did not change.
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
	c.Diff = DiffPlans(PlanOf(t, c.From), PlanOf(t, c.To))
	return c, found && c.Diff.Any()
}

// PlannedChange is the plan of a dispatch before a step and in the step.
type PlannedChange struct {
	Op   trace.OpID
	Diff PlanDiff
	trace.PlanChange
}
