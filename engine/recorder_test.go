package engine

import (
	"slices"
	"testing"

	"gpuscope/engine/gpu/fake"
	"gpuscope/trace"
)

// A plan is recorded once, and again only where it was not in force for PlanMemory steps: what the recorder
// knows of plans does not grow with a run.
func TestRecorderForgetsPlansThatWereNotInForceForLong(t *testing.T) {
	r := newRig(t, fake.Options{})
	rec := NewRecorder(r.x)
	record := func(n, pos int) (plans int, step trace.Step) {
		t.Helper()
		r.mustStep(t, n, pos)
		fresh, s := rec.Step()
		checkPlans(t, r.x, rec, s)
		return len(fresh), s
	}
	record(7, 7)
	if n, _ := record(3, 3); n == 0 {
		t.Fatal("another shape has no new plans: this test shows nothing")
	}
	if n, _ := record(7, 7); n != 0 {
		t.Errorf("%d plans were recorded again after two steps", n)
	}
	var was trace.Step
	for range 2 * trace.PlanMemory {
		n, s := record(7, 7)
		if n != 0 {
			t.Fatalf("step %d: %d plans of a shape that kept", s.Index, n)
		}
		was = s
	}
	n, s := record(3, 3)
	if n == 0 {
		t.Error("plans that were not in force for long are still known")
	}
	for _, p := range s.Resize.Passes {
		for _, h := range p.Hooks {
			for _, c := range h.Plans {
				if c.From != nil &&
					!slices.ContainsFunc(was.Dispatches,
						func(d trace.StepDispatch) bool { return d.Plan == *c.From }) {
					t.Errorf("op %d: plan %d was not in force in the step before", h.Op, *c.From)
				}
			}
		}
	}
}
