package tracetest

import (
	"slices"

	"gpuscope/trace"
)

// Barrier is a pair of dispatches: Dispatch begins a level, and its barrier waits for the dispatch For.
type Barrier struct{ Dispatch, For trace.DispatchID }

// Barriers derives the levels of a step and their waits from the trace alone. It applies the rule of
// docs/reference/trace-format.md for a graph with one compute pass. It uses neither the recorded levels nor
// the engine.
func Barriers(t *trace.Trace, step int) (levels []trace.DispatchID, waits []Barrier) {
	type memory struct {
		slot bool
		n    int
	}
	in := func(v trace.ValueID) memory {
		for t.Graph.Values[v].AliasOf != nil {
			v = *t.Graph.Values[v].AliasOf
		}
		if slot := t.Graph.Values[v].Slot; slot != nil {
			return memory{true, *slot}
		}
		return memory{false, int(v)}
	}
	type use struct {
		by     trace.DispatchID
		writes bool
	}
	last := map[memory]use{}
	for i, ran := range t.Steps[step].Dispatches {
		plan := &t.Plans[ran.Plan]
		d := &t.Graph.Dispatches[plan.Dispatch]
		uses := map[memory]bool{} // whether the dispatch writes the memory
		for _, v := range t.BoundTo(plan) {
			uses[in(v)] = uses[in(v)] || slices.Contains(d.Writes, v)
		}
		begins := i == 0
		for m, writes := range uses {
			if was, used := last[m]; used && (was.writes || writes) {
				begins = true
				if b := (Barrier{d.ID, was.by}); !slices.Contains(waits, b) {
					waits = append(waits, b)
				}
			}
			last[m] = use{d.ID, writes}
		}
		if begins {
			levels = append(levels, d.ID)
		}
	}
	slices.SortFunc(waits, compareBarriers)
	return levels, waits
}

// Recorded returns the recorded levels and waits that are in use at a step.
func Recorded(t *trace.Trace, step int) (levels []trace.DispatchID, waits []Barrier) {
	for len(t.Steps[step].Levels) == 0 && step > 0 {
		step--
	}
	for _, w := range t.Steps[step].Waits {
		if b := (Barrier{w.Dispatch, w.For}); !slices.Contains(waits, b) {
			waits = append(waits, b)
		}
	}
	slices.SortFunc(waits, compareBarriers)
	return t.Steps[step].Levels, waits
}

func compareBarriers(a, b Barrier) int {
	return slices.Compare([]trace.DispatchID{a.Dispatch, a.For}, []trace.DispatchID{b.Dispatch, b.For})
}
