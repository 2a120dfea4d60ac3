package session

import (
	"fmt"
	"runtime"
	"testing"

	"gpuscope/trace"
)

// running sends a mirror the events of steps that never end: a graph of two dispatches, one of which gets
// another plan with every step.
type running struct {
	m     Mirror
	ids   trace.Interner
	steps int
	last  trace.PlanID
}

func newRunning(t *testing.T, budget int64) *running {
	t.Helper()
	r := &running{m: Mirror{Budget: budget}}
	head := &trace.Trace{Schema: trace.Schema, Graph: trace.Graph{
		Values: []trace.Value{{
			ID: 0, Name: "x", Kind: "tensor", DType: "f32", MaxDims: []int{8}, Bytes: 32,
			Role: "input",
		}},
		Ops:     []trace.Op{{ID: 0, Name: "f", Kind: "f", Inputs: []trace.ValueID{0}}},
		Kernels: []trace.Kernel{{Name: "k", WorkgroupSize: [3]int{64, 1, 1}}},
		Dispatches: []trace.Dispatch{
			{ID: 0, Op: 0, Label: "a", Kernels: []string{"k"}, MaxWorkgroups: [3]int{1, 1, 1}},
			{ID: 1, Op: 0, Label: "b", Kernels: []string{"k"}, MaxWorkgroups: [3]int{1, 1, 1}},
		},
	}}
	r.apply(t, Event{Opened: head})
	return r
}

func (r *running) apply(t *testing.T, e Event) {
	t.Helper()
	if err := r.m.Apply(e); err != nil {
		t.Fatal(err)
	}
}

// step is one more step, of new plans where its position is new.
func (r *running) step(t *testing.T, position int) {
	t.Helper()
	var plans []trace.Plan
	var named [2]trace.PlanID
	for d := range named {
		p := trace.Plan{
			Dispatch: trace.DispatchID(d), Kernel: "k", Workgroups: [3]int{1, 1, 1},
			NeededGrid: [3]int{1, 1, 1}, NeededGroups: 1,
		}
		if d == 1 {
			p.Params = fmt.Sprintf("%08x", position)
		}
		id, fresh := r.ids.ID(fmt.Append(nil, p))
		if p.ID = id; fresh {
			plans = append(plans, p)
		}
		named[d] = id
	}
	r.ids.Step()
	if plans != nil {
		r.apply(t, Event{Plans: plans})
	}
	from, to := r.last, named[1]
	change := trace.PlanChange{From: &from, To: &to}
	if r.steps == 0 {
		change.From = nil
	}
	r.last = named[1]
	token := position % 50
	r.apply(t, Event{Step: &trace.Step{
		Index: r.steps, Phase: "decode", Position: position, Tokens: []int{1}, Token: &token,
		Timing: "dispatch", Dims: []trace.LiveDims{{Value: 0, Dims: []int{1 + position%8}}},
		Resize: trace.Resize{
			Order:  "topological",
			Passes: []trace.Pass{{Hooks: []trace.Hook{{Plans: []trace.PlanChange{change}}}}},
		},
		Dispatches: []trace.StepDispatch{
			{Plan: named[0], GPUNS: trace.Measured(1000)},
			{Plan: named[1], GPUNS: trace.Measured(int64(position))},
		},
	}})
	r.steps++
	if position%100 == 99 {
		r.m.State.Text = nil // as a new prompt does
	}
}

func TestMirrorOfARunThatNeverEndsStaysWithinItsBudget(t *testing.T) {
	const budget, steps = 1 << 20, 20000
	r := newRunning(t, budget)
	var before trace.Trace
	for i := range steps {
		r.step(t, i)
		if i == steps/2 {
			before = *r.m.Trace
		}
	}
	got := r.m.Trace
	if err := got.Check(); err != nil {
		t.Fatal(err)
	}
	if got.DroppedSteps == 0 || got.DroppedSteps+len(got.Steps) != steps {
		t.Errorf("%d steps kept, %d dropped, want %d together", len(got.Steps), got.DroppedSteps, steps)
	}
	for i := range got.Steps {
		s := &got.Steps[i]
		if p := got.Plans[s.Dispatches[1].Plan]; s.Index != got.DroppedSteps+i ||
			p.Params != fmt.Sprintf("%08x", s.Position) || p.Dispatch != 1 {
			t.Fatalf("step %d at place %d, position %d: plan %+v", s.Index, i, s.Position, p)
		}
	}
	if err := before.Check(); err != nil {
		t.Errorf("a trace from before is another now: %v", err)
	}
	before = trace.Trace{}

	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	full := heap()
	for i := range steps {
		r.step(t, steps+i)
	}
	// How full the budget is differs by a quarter of it, and lists have room to grow.
	if grown := heap() - full; grown > budget {
		t.Errorf("%d more steps hold %d bytes more", steps, grown)
	}
	runtime.KeepAlive(r)
}

func TestMirrorGivesRepeatsToTheirStepAndLeavesEarlierTracesAlone(t *testing.T) {
	r := newRunning(t, 0)
	r.step(t, 0)
	r.step(t, 1)
	before := r.m.Trace
	for range 2 {
		r.apply(t, Event{Repeated: &Repeated{Step: 0, Samples: [][]int64{{1}, {2}}}})
	}
	if got := fmt.Sprint(r.m.Trace.Steps[0].Dispatches[0].Samples, r.m.Trace.Steps[0].Dispatches[1].Samples,
		r.m.Trace.Steps[1].Dispatches[0].Samples); got != "[1 1] [2 2] []" {
		t.Errorf("samples %s", got)
	}
	if got := before.Steps[0].Dispatches[0].Samples; got != nil {
		t.Errorf("the trace from before has samples %v", got)
	}
	if got := fmt.Sprint(r.m.State.Step, r.m.State.Position, len(r.m.State.Text)); got != "1 2 2" {
		t.Errorf("the mirror stands at %s", got)
	}
}

func TestMirrorRefusesWhatNamesNothing(t *testing.T) {
	r := newRunning(t, 0)
	r.step(t, 0)
	for name, e := range map[string]Event{
		"plan":    {Step: &trace.Step{Index: 1, Dispatches: []trace.StepDispatch{{Plan: 7}}}},
		"index":   {Step: &trace.Step{Index: 0}},
		"samples": {Repeated: &Repeated{Step: 9, Samples: [][]int64{}}},
		"plans":   {Plans: []trace.Plan{{ID: 9}}},
	} {
		if err := r.m.Apply(e); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	if n := len(r.m.Trace.Steps); n != 1 || r.m.State.Step != 0 {
		t.Errorf("%d steps, at step %d after what was refused", n, r.m.State.Step)
	}
	if err := new(Mirror).Apply(Event{Step: &trace.Step{}}); err == nil {
		t.Error("a step before the trace was opened was taken")
	}
}
