package session

import (
	"fmt"
	"runtime"
	"testing"

	"gpuscope/trace"
)

// running sends a mirror the events of an endless run. Its graph has two dispatches, and one of them gets a
// new plan in every step.
type running struct {
	m     Mirror
	ids   trace.Interner
	steps int
	last  trace.PlanID
	whole bool // keep one text; otherwise a new one begins every 100 steps
}

func newRunning(t testing.TB, budget int64) *running {
	t.Helper()
	r := &running{m: Mirror{Budget: budget}}
	head := &trace.Trace{Schema: trace.Schema, Graph: trace.Graph{
		Values: []trace.Value{{
			ID: 0, Name: "x", Kind: "tensor", DType: "f32", MaxDims: []int{8}, Bytes: 32,
			Role: trace.RoleInput,
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

func (r *running) apply(t testing.TB, e Event) {
	t.Helper()
	if err := r.m.Apply(e); err != nil {
		t.Fatal(err)
	}
}

// begin starts a text with another prompt.
func (r *running) begin(t testing.TB) {
	r.apply(t, Event{State: &State{Step: -1, Begins: &Text{Prompt: []Token{{1, "a"}}}}})
}

// step sends one more step. A new position makes new plans.
func (r *running) step(t testing.TB, position int) {
	t.Helper()
	var records []trace.Record
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
			records = append(records, trace.Record{Plan: &p})
		}
		named[d] = id
	}
	r.ids.Step()
	from, to := r.last, named[1]
	change := trace.PlanChange{From: &from, To: &to}
	if r.steps == 0 {
		change.From = nil
	}
	r.last = named[1]
	token := position % 50
	r.apply(t, Event{Records: append(records, trace.Record{Step: &trace.Step{
		Index: r.steps, Phase: trace.Decode, Position: position, Tokens: []int{1}, Token: &token,
		Timing: trace.TimingDispatch, Dims: []trace.LiveDims{{Value: 0, Dims: []int{1 + position%8}}},
		Resize: trace.Resize{
			Order:  "topological",
			Passes: []trace.Pass{{Hooks: []trace.Hook{{Plans: []trace.PlanChange{change}}}}},
		},
		Dispatches: []trace.StepDispatch{
			{Plan: named[0], GPUNS: trace.Measured(1000)},
			{Plan: named[1], GPUNS: trace.Measured(int64(position))},
		},
	}})})
	r.steps++
	if !r.whole && position%100 == 99 {
		r.begin(t)
	}
}

func TestMirrorOfAnEndlessRunKeepsItsBudget(t *testing.T) {
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
		t.Errorf("an earlier snapshot of the trace changed: %v", err)
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
	// The fill of the budget varies by half of it, and lists have room to grow.
	if grown := heap() - full; grown > budget {
		t.Errorf("after %d more steps the heap is %d bytes larger", steps, grown)
	}
	runtime.KeepAlive(r)
}

func TestMirrorAddsRepeatsOnlyToTheirStep(t *testing.T) {
	r := newRunning(t, 0)
	r.step(t, 0)
	r.step(t, 1)
	before := r.m.Trace
	for range 2 {
		r.apply(t, one(trace.Record{Samples: &trace.Samples{Step: 0, Samples: [][]int64{{1}, {2}}}}))
	}
	if got := fmt.Sprint(r.m.Trace.Steps[0].Dispatches[0].Samples, r.m.Trace.Steps[0].Dispatches[1].Samples,
		r.m.Trace.Steps[1].Dispatches[0].Samples); got != "[1 1] [2 2] []" {
		t.Errorf("samples %s", got)
	}
	if got := before.Steps[0].Dispatches[0].Samples; got != nil {
		t.Errorf("the earlier snapshot of the trace has samples %v", got)
	}
	if got := fmt.Sprint(r.m.State.Step, r.m.State.Position, len(r.m.Text.Given)); got != "1 2 2" {
		t.Errorf("step, position and tokens of the mirror: %s", got)
	}
}

func one(r trace.Record) Event { return Event{Records: []trace.Record{r}} }

func TestMirrorRefusesWhatNamesNothing(t *testing.T) {
	r := newRunning(t, 0)
	r.step(t, 0)
	for name, e := range map[string]Event{
		"plan": one(trace.Record{
			Step: &trace.Step{Index: 1, Dispatches: []trace.StepDispatch{{Plan: 7}}},
		}),
		"index":   one(trace.Record{Step: &trace.Step{Index: 0}}),
		"samples": one(trace.Record{Samples: &trace.Samples{Step: 9, Samples: [][]int64{}}}),
		"plans":   one(trace.Record{Plan: &trace.Plan{ID: 9}}),
		"given":   {State: &State{Given: 2}},
	} {
		if err := r.m.Apply(e); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if n := len(r.m.Trace.Steps); n != 1 || r.m.State.Step != 0 {
		t.Errorf("%d steps, at step %d after the refused events", n, r.m.State.Step)
	}
	if err := new(Mirror).Apply(one(trace.Record{Step: &trace.Step{}})); err == nil {
		t.Error("accepted a step before the trace was opened")
	}
}

func TestMirrorLeavesTextsFromBeforeAlone(t *testing.T) {
	r := newRunning(t, 0)
	r.begin(t)
	for i := range 3 {
		r.step(t, i)
	}
	three := r.m.Text
	back := r.m.State
	back.Given, back.Step, back.Position = 1, 0, 1
	r.apply(t, Event{State: &back})
	one := r.m.Text
	r.step(t, 40) // another second token
	r.step(t, 41)
	for _, c := range []struct {
		name string
		text Text
		want string
	}{
		{"three steps", three, "[{0 } {1 } {2 }]"},
		{"two steps back", one, "[{0 }]"},
		{"two other steps", r.m.Text, "[{0 } {40 } {41 }]"},
	} {
		if got := fmt.Sprint(c.text.Given); got != c.want || fmt.Sprint(c.text.Prompt) != "[{1 a}]" {
			t.Errorf("%s: got %s after prompt %v, want %s", c.name, got, c.text.Prompt, c.want)
		}
	}
	if r.m.State.Given != 3 {
		t.Errorf("%d tokens given, want 3", r.m.State.Given)
	}
}

// longRun runs a text with the given number of steps. It sends the state after each step, as manual steps do.
func longRun(t testing.TB, steps int) *running {
	r := newRunning(t, 1<<20)
	r.whole = true
	r.begin(t)
	for i := range steps {
		r.step(t, i)
		state := r.m.State
		r.apply(t, Event{State: &state})
	}
	return r
}

// The cost of a step in the mirror must not grow with the length of the text before it.
func TestMirrorCostGrowsWithStepsOnly(t *testing.T) {
	allocated := func(steps int) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r := longRun(t, steps)
		runtime.ReadMemStats(&after)
		if n := len(r.m.Text.Given); n != steps {
			t.Fatalf("%d tokens given in %d steps", n, steps)
		}
		return after.TotalAlloc - before.TotalAlloc
	}
	short, long := allocated(1500), allocated(9000)
	if long > 12*short {
		t.Errorf("9,000 steps allocate %d bytes, 1,500 allocate %d: %.1f times as much", long, short,
			float64(long)/float64(short))
	}
}

func BenchmarkMirrorOf50000Steps(b *testing.B) {
	for b.Loop() {
		longRun(b, 50000)
	}
}

// An engine that continues opens the graph as the model defines it, without the kernels that replaced some of
// its own.
func TestMirrorGoesOnWhereKernelsHadAnotherText(t *testing.T) {
	r := newRunning(t, 0)
	r.begin(t)
	r.step(t, 0)
	head := *r.m.Trace
	head.Plans, head.Steps = nil, nil
	r.apply(t, Event{Records: []trace.Record{{Kernel: &trace.Kernel{
		Name: "k+3fa2", Of: "k", WorkgroupSize: [3]int{64, 1, 1}, SourceSHA256: "3fa2",
	}}}})
	r.m.Continue()
	r.apply(t, Event{Opened: &head})
	if n := len(r.m.Trace.Graph.Kernels); n != 2 {
		t.Errorf("%d kernels", n)
	}
	other := head
	other.Graph.Kernels = nil
	if err := r.m.Apply(Event{Opened: &other}); err == nil {
		t.Error("accepted another graph as the same")
	}
}
