package trace

import (
	"slices"
	"testing"
)

func stepWith(index int, plans ...PlanID) Step {
	s := Step{Index: index}
	for _, id := range plans {
		s.Dispatches = append(s.Dispatches, StepDispatch{Plan: id})
	}
	return s
}

func (t *PlanTable) mustUse(tb testing.TB, s Step) (fresh []DispatchID, ids []PlanID) {
	tb.Helper()
	moved, err := t.Use(s, func(p Plan) { fresh = append(fresh, p.Dispatch) })
	if err != nil {
		tb.Fatal(err)
	}
	for i := range moved.Dispatches {
		ids = append(ids, moved.Dispatches[i].Plan)
	}
	return fresh, ids
}

// A trace has the plans that its steps use, in the order of their ids. Plans that are not in the trace, or
// not any more, are added when a step uses them.
func TestPlanTableAddsPlansWhenTheyAreUsed(t *testing.T) {
	var table PlanTable
	for id := range PlanID(6) {
		if err := table.Add(&Plan{ID: id, Dispatch: DispatchID(10 + id)}); err != nil {
			t.Fatal(err)
		}
	}
	skipped := stepWith(0, 0, 1)
	table.Skip(&skipped)
	fresh, ids := table.mustUse(t, stepWith(1, 5, 2, 5))
	if !slices.Equal(fresh, []DispatchID{12, 15}) || !slices.Equal(ids, []PlanID{1, 0, 1}) {
		t.Errorf("step 1 adds the plans of dispatches %v and has the ids %v", fresh, ids)
	}
	fresh, ids = table.mustUse(t, stepWith(2, 1, 2))
	if !slices.Equal(fresh, []DispatchID{11}) || !slices.Equal(ids, []PlanID{2, 0}) {
		t.Errorf("step 2 adds the plans of dispatches %v and has the ids %v", fresh, ids)
	}
	if _, err := table.Use(stepWith(3, 1, 6), nil); err == nil {
		t.Error("a step used a plan that was never added")
	}

	plans := []Plan{{ID: 0, Dispatch: 12}, {ID: 1, Dispatch: 15}, {ID: 2, Dispatch: 11}}
	kept, moved := table.drop(plans, []bool{false, true, true}) // step 1 is dropped
	if len(kept) != 2 || kept[0] != (Plan{ID: 0, Dispatch: 15}) || kept[1] != (Plan{ID: 1, Dispatch: 11}) ||
		!slices.Equal(moved, []PlanID{-1, 0, 1}) {
		t.Errorf("after a drop the trace has the plans %v, moved to %v", kept, moved)
	}
	fresh, ids = table.mustUse(t, stepWith(4, 2, 1))
	if !slices.Equal(fresh, []DispatchID{12}) || !slices.Equal(ids, []PlanID{2, 1}) {
		t.Errorf("step 4 adds the plans of dispatches %v and has the ids %v", fresh, ids)
	}
}

// The plans outside the trace do not grow with the length of the run.
func TestPlanTableForgetsOldPlans(t *testing.T) {
	var table PlanTable
	next := PlanID(0)
	for step := range 5 * PlanMemory {
		for range 2 {
			if err := table.Add(&Plan{ID: next}); err != nil {
				t.Fatal(err)
			}
			next++
		}
		s := stepWith(step, 0, next-2, next-1)
		table.Skip(&s)
	}
	if n, most := len(table.others), 2*(PlanMemory+PlanMemory/4+1)+1; n < 2*PlanMemory || n > most {
		t.Errorf("%d plans are remembered, want %d to %d", n, 2*PlanMemory, most)
	}
	if _, err := table.Use(stepWith(5*PlanMemory, 1), nil); err == nil {
		t.Error("a plan that was used long ago is still known")
	}
	oldest := next - 2*PlanMemory
	if _, ids := table.mustUse(t, stepWith(5*PlanMemory+1, 0, oldest)); !slices.Equal(ids, []PlanID{0, 1}) {
		t.Errorf("plans in use have the ids %v", ids)
	}
}
