package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gpuscope/engine/gpu/fake"
	"gpuscope/engine/graph"
	"gpuscope/engine/graph/graphtest"
	"gpuscope/trace"
	"gpuscope/trace/tracetest"
)

// told is the state that follows from the records of a trace so far. Each record lists what changed since the
// previous one.
type told struct {
	dims   map[graph.ValueID][]int
	ints   map[string]int64
	plans  []trace.PlanID // by dispatch; -1 if not active
	levels []trace.DispatchID
	waits  []trace.Wait
}

func newTold(r *Recorder) *told {
	k := &told{
		dims:  map[graph.ValueID][]int{},
		ints:  map[string]int64{},
		plans: slices.Clone(r.shapes.InForce()),
	}
	for i := range r.x.g.Values {
		v := &r.x.g.Values[i]
		k.dims[graph.ValueID(i)] = append([]int{}, v.MaxDims...)
		if v.Kind == graph.SymInt {
			k.ints[v.Name] = r.x.live.Int(graph.ValueID(i))
		}
	}
	return k
}

// take applies the next record. The old values in it must match the state after the previous records.
func (k *told) take(
	t fataler,
	g *graph.Graph,
	dispatchOf func(trace.PlanID) trace.DispatchID,
	s *trace.Step,
) {
	t.Helper()
	inForce := func(d trace.DispatchID) *trace.PlanID {
		if k.plans[d] < 0 {
			return nil
		}
		return &k.plans[d]
	}
	moved := map[graph.ValueID]bool{}
	for _, p := range s.Resize.Passes {
		for _, v := range p.Dirty {
			moved[v] = true
		}
		for _, h := range p.Hooks {
			for _, c := range h.Changed {
				was := k.dims[c.Value]
				if g.Values[c.Value].Kind == graph.SymInt {
					was = []int{int(k.ints[g.Values[c.Value].Name])}
					k.ints[g.Values[c.Value].Name] = int64(c.To[0])
				} else {
					k.dims[c.Value] = c.To
				}
				if d := cmp.Diff(was, c.From); d != "" &&
					(s.Index > 0 || g.Values[c.Value].Kind == graph.Tensor) {
					t.Fatalf("step %d: %s changes from %v, it was %v", s.Index, g.Values[c.Value].Name,
						c.From, was)
				}
				if cmp.Equal(c.From, c.To) {
					t.Fatalf("step %d: %s changes from %v to %v", s.Index, g.Values[c.Value].Name, c.From,
						c.To)
				}
				moved[c.Value] = true
			}
			for _, c := range h.Plans {
				d := dispatchOf(*cmpOr(c.From, c.To))
				if diff := cmp.Diff(inForce(d), c.From); diff != "" {
					t.Fatalf("step %d: dispatch %d changes from another plan than it had:\n%s", s.Index, d,
						diff)
				}
				k.plans[d] = -1
				if c.To != nil {
					k.plans[d] = *c.To
				}
			}
		}
	}
	for _, d := range s.Dims {
		if s.Index > 0 && !moved[d.Value] {
			t.Fatalf("step %d: new dims of %s, but nothing changed it", s.Index, g.Values[d.Value].Name)
		}
		k.dims[d.Value] = d.Dims
	}
	k.ints = maps.Clone(s.SymInts)
	if s.Levels != nil {
		k.levels, k.waits = s.Levels, s.Waits
	}
}

func cmpOr[T any](a, b *T) *T {
	if a != nil {
		return a
	}
	return b
}

// is compares the state from the records with the executor's state.
func (k *told) is(t fataler, x *Executor, s *trace.Step) {
	t.Helper()
	g := x.g
	for i := range g.Values {
		switch v := &g.Values[i]; {
		case v.Kind == graph.SymInt:
			if got, want := k.ints[v.Name], x.live.Int(graph.ValueID(i)); got != want {
				t.Fatalf("step %d: %s is recorded as %d, it is %d", s.Index, v.Name, got, want)
			}
		case v.Role != graph.Constant && v.Role != graph.Fused:
			got, want := k.dims[graph.ValueID(i)], x.live.Dims(graph.ValueID(i))
			writes := func(d trace.DispatchID) bool {
				return slices.Contains(g.Dispatches[d].Writes, graph.ValueID(i))
			}
			if v.Role != graph.Input && v.Role != graph.State && v.Alias == graph.None &&
				!slices.ContainsFunc(x.Writers(graph.ValueID(i)), writes) {
				want = nil // no dispatch of the step writes it
			}
			if (got == nil) != (want == nil) || !slices.Equal(got, want) {
				t.Fatalf("step %d: %s is recorded as %v, it is %v", s.Index, v.Name, got, want)
			}
		}
	}
	var plans []trace.PlanID
	for _, id := range x.live.Active() {
		plans = append(plans, k.plans[id])
	}
	var ran []trace.PlanID
	for _, d := range s.Dispatches {
		ran = append(ran, d.Plan)
	}
	if d := cmp.Diff(plans, ran); d != "" {
		t.Fatalf("step %d: plans by the resizes so far (-) and by the list of dispatches (+):\n%s", s.Index,
			d)
	}
	if !slices.Equal(k.levels, x.live.Levels()) || !slices.Equal(k.waits, x.live.Waits()) {
		t.Fatalf("step %d: the recorded levels are %v, want %v", s.Index, k.levels, x.live.Levels())
	}
}

// Steps that are not recorded, and steps that fail, run in between. A record still lists the changes since
// the previous record.
func TestPartialRecordsKeepEachStepsPosition(t *testing.T) {
	graphtest.Draws(t, 300)
	rapid.Check(t, func(t *rapid.T) {
		dev := fake.New(fake.Options{NoLog: true})
		g, inputs, pos := graphtest.RandomGraph(t, dev.Info().Limits)
		options := graph.LiveOptions{
			Order: graph.Order(rapid.IntRange(0, 1).Draw(t, "order")), Static: rapid.Bool().Draw(t, "static"),
		}
		x, err := Load(dev, g, options, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer x.Release()
		rec := NewRecorder(x)
		known := newTold(rec)
		var plans []trace.Plan
		var steps []trace.Step
		dispatchOf := func(p trace.PlanID) trace.DispatchID { return plans[p].Dispatch }
		waiting := []*Snapshot(nil)
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			n := rapid.SampledFrom([]int{1, 1, 2, 7, graphtest.Rows}).Draw(t, "rows")
			in := graph.StepInput{
				SymInts: []graph.SymIntValue{{Value: pos, Int: int64(rapid.IntRange(1, 9).Draw(t, "pos"))}},
			}
			for _, v := range inputs {
				in.Inputs = append(
					in.Inputs,
					graph.InputData{
						Value: v,
						Dims:  []int{n, graphtest.Width},
						Data:  make([]byte, 4*n*graphtest.Width),
					},
				)
			}
			if rapid.IntRange(0, 5).Draw(t, "fails") == 0 {
				dev.FailNth(fake.Submit, 1, errors.New("injected"))
			}
			err := x.Step(context.Background(), &in, Timing(rapid.IntRange(0, 2).Draw(t, "timing")))
			dev.FailNth(fake.Submit, 1<<30, nil)
			if err != nil || rapid.IntRange(0, 2).Draw(t, "recorded") == 0 {
				continue
			}
			waiting = append(waiting, rec.Snapshot())
			if rapid.Bool().Draw(t, "recorded later") {
				continue
			}
			for i, snapshot := range waiting {
				fresh, s := snapshot.Record()
				plans = append(plans, fresh...)
				known.take(t, g, dispatchOf, &s)
				if i == len(waiting)-1 {
					known.is(t, x, &s)
				}
				s.Phase = trace.Execute
				steps = append(steps, s)
			}
			waiting = waiting[:0]
		}
		tr := &trace.Trace{Schema: trace.Schema, Graph: g.Describe(), Plans: plans, Steps: steps}
		readsBack(t, tr)
		for i := range tr.Steps {
			if len(g.Layouts) > 1 || x.live.Passes() > 1 {
				break // the trace does not say which dispatches begin a pass
			}
			levels, waits := tracetest.Barriers(tr, i)
			recorded, recordedWaits := tracetest.Recorded(tr, i)
			if d := cmp.Diff(recorded, levels); d != "" {
				t.Fatalf("step %d: levels (-recorded +derived):\n%s", i, d)
			}
			if d := cmp.Diff(recordedWaits, waits); d != "" {
				t.Fatalf("step %d: waits (-recorded +derived):\n%s", i, d)
			}
		}
	})
}

// readsBack writes a trace and reads it back. Reading also checks that the changes begin and end at live
// shapes.
func readsBack(t fataler, want *trace.Trace) {
	t.Helper()
	var b bytes.Buffer
	if err := trace.Write(&b, want); err != nil {
		t.Fatalf("%v", err)
	}
	got, err := trace.Read(&b)
	if err != nil {
		t.Fatalf("%v", err)
	}
	for i := range want.Steps {
		a, b := &want.Steps[i], &got.Steps[i]
		if d := cmp.Diff(a.Dims, b.Dims) + cmp.Diff(a.Resize, b.Resize); d != "" {
			t.Fatalf("step %d (-written +read):\n%s", i, d)
		}
	}
}

// A plan is recorded again only if it was not used for PlanMemory steps. The recorder's memory of plans
// therefore does not grow during a run.
func TestRecorderForgetsPlansUnusedForLong(t *testing.T) {
	r := newRig(t, fake.Options{NoLog: true})
	r.dev.OnDispatch = nil // thousands of steps whose results are not checked
	rec := NewRecorder(r.x)
	record := func(n, pos int) (plans int, step trace.Step) {
		t.Helper()
		if err := r.x.Step(context.Background(), r.input(n, pos), TimingOff); err != nil {
			t.Fatal(err)
		}
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
			t.Fatalf("step %d: %d new plans for an unchanged shape", s.Index, n)
		}
		was = s
	}
	n, s := record(3, 3)
	if n == 0 {
		t.Error("plans that were not used for long are still known")
	}
	for _, p := range s.Resize.Passes {
		for _, h := range p.Hooks {
			for _, c := range h.Plans {
				if c.From != nil &&
					!slices.ContainsFunc(was.Dispatches,
						func(d trace.StepDispatch) bool { return d.Plan == *c.From }) {
					t.Errorf("op %d: plan %d was not used in the previous step", h.Op, *c.From)
				}
			}
		}
	}
}

// decodeRig is a graph of 264 dispatches. The params of 66 of them change with every position, as in a
// model's decode step.
func decodeRig(t testing.TB) (x *Executor, step func()) {
	dev := fake.New(fake.Options{NoLog: true})
	b := graph.NewBuilder(dev.Info().Limits)
	y := graphtest.RowsInput(b, "x")
	pos := b.SymInt("pos", 0, 1<<20, 0)
	for i := range 66 {
		y = graphtest.Residual(b, fmt.Sprint("block", i), y, 2)
		y = graphtest.Shift(b, fmt.Sprint("shift", i), y, pos, func(pos int) int { return pos })
	}
	var err error
	if x, err = Load(dev, graphtest.Finish(t, b, y), graph.LiveOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.Release)
	if n := len(x.live.Active()); n != 264 {
		t.Fatalf("%d dispatches", n)
	}
	in := &graph.StepInput{
		Inputs: []graph.InputData{
			{
				Value: x.g.Inputs()[0],
				Dims:  []int{1, graphtest.Width},
				Data:  graphtest.BytesOf(graphtest.Pattern(1, 0)),
			},
		},
		SymInts: []graph.SymIntValue{{Value: pos}},
	}
	return x, func() {
		in.SymInts[0].Int++
		if err := x.Step(context.Background(), in, TimingDispatch); err != nil {
			t.Fatal(err)
		}
	}
}

// During the steps, recording only takes snapshots, which allocate nothing. A record allocates what the trace
// keeps: some lists, and the new plans.
func TestRecordingAllocatesOnlyWhatTheRecordKeeps(t *testing.T) {
	x, step := decodeRig(t)
	rec := NewRecorder(x)
	var s *Snapshot
	next := func() { step(); s = rec.Snapshot() }
	for range 10 {
		next()
		s.Record()
	}
	if n := testing.AllocsPerRun(50, func() { next(); rec.recycle(s) }); n != 0 {
		t.Errorf("%v allocations a snapshot", n)
	}
	const lists, plans = 12, 66
	// A new plan allocates its params in hex and an entry in the map of known plans.
	if n := testing.AllocsPerRun(50, func() { next(); s.Record() }); n > lists+plans*2 {
		t.Errorf("%v allocations a record, want at most %d", n, lists+plans*2)
	}
}

func BenchmarkSnapshot(b *testing.B) {
	x, step := decodeRig(b)
	rec := NewRecorder(x)
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		step()
		b.StartTimer()
		rec.recycle(rec.Snapshot())
	}
}

func BenchmarkRecord(b *testing.B) {
	x, step := decodeRig(b)
	rec := NewRecorder(x)
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		step()
		s := rec.Snapshot()
		b.StartTimer()
		s.Record()
	}
}

// Records are made on a separate goroutine while the steps continue, even after a step that was not recorded.
// They must equal records that are made at once.
func TestRecordsAreMadeWhileTheStepsGoOn(t *testing.T) {
	steps := [][2]int{{7, 7}, {7, 6}, {1, 1}, {512, 300}, {7, 7}, {7, 7}, {1, 1}}
	run := func(record func(*Snapshot)) {
		r := newRig(t, fake.Options{NoLog: true})
		rec := NewRecorder(r.x)
		for i := range 60 {
			s := steps[i%len(steps)]
			r.mustStep(t, s[0], s[1])
			if i%4 != 3 {
				record(rec.Snapshot())
			}
		}
	}
	type made struct {
		plans []trace.Plan
		step  trace.Step
	}
	bare := func(s *Snapshot) made {
		plans, step := s.Record()
		step.CPU, step.GPU, step.Resize.NS = trace.CPU{}, nil, trace.Time{}
		for i := range step.Dispatches {
			step.Dispatches[i] = trace.StepDispatch{Plan: step.Dispatches[i].Plan}
		}
		for _, p := range step.Resize.Passes {
			for i := range p.Hooks {
				p.Hooks[i].NS = trace.Time{}
			}
		}
		return made{plans, step}
	}
	var atOnce, elsewhere []made
	run(func(s *Snapshot) { atOnce = append(atOnce, bare(s)) })
	queue, done := make(chan *Snapshot, 100), make(chan bool)
	go func() {
		defer close(done)
		for s := range queue {
			elsewhere = append(elsewhere, bare(s))
		}
	}()
	run(func(s *Snapshot) { queue <- s })
	close(queue)
	<-done
	if d := cmp.Diff(atOnce, elsewhere, cmp.AllowUnexported(made{})); d != "" {
		t.Error(d)
	}
}
