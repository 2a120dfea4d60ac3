package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/fake"
	"gpuscope/engine/graph"
	"gpuscope/engine/graph/graphtest"
	"gpuscope/trace"
)

// hop is a step of a chain: rows that go in, what they are cut to, and whether they are what the step before
// gave.
type hop struct {
	rows, cut int
	fed       bool
}

// chainInput is the input of a hop whose data, where it does not come from the device, is data.
func (r *rig) chainInput(h hop, data []byte) *graph.StepInput {
	in := r.input(h.rows, h.cut)
	in.Inputs[0].Data = data
	if h.fed {
		in.Inputs[0].From = &r.of
	}
	return in
}

// oneByOne gives what each hop gives, where every step is over before the next begins.
func (r *rig) oneByOne(t testing.TB, hops []hop, each func()) (gave [][]uint32) {
	t.Helper()
	for _, h := range hops {
		in := r.chainInput(h, graphtest.BytesOf(graphtest.Pattern(h.rows, 0)))
		if err := r.x.Step(context.Background(), in, TimingStep); err != nil {
			t.Fatal(err)
		}
		gave = append(gave, slices.Clone(r.output(t)))
		each()
	}
	return gave
}

// ahead gives the same where each step is prepared, and with pipelined sent too, before the one before it is
// finished. each is called when the shapes of a step are in force, and gives what is to be called when it has
// ended.
func (r *rig) ahead(hops []hop, pipelined bool, each func() func()) (gave [][]uint32, err error) {
	ctx := context.Background()
	var next *graph.StepInput
	prepare := func(h hop) error {
		next = r.chainInput(h, graphtest.BytesOf(graphtest.Pattern(h.rows, 0)))
		return r.x.Prepare(ctx, next, TimingStep)
	}
	err = prepare(hops[0])
	if err == nil {
		err = r.x.Send(next)
	}
	for i := range hops {
		if err != nil {
			return gave, err
		}
		ended := each()
		more := i+1 < len(hops)
		if more {
			if err = prepare(hops[i+1]); err == nil && pipelined {
				err = r.x.Send(next)
			} else if err == nil {
				err = r.x.Flush()
			}
			if err != nil {
				return gave, err
			}
		}
		if err = r.x.Finish(); err != nil {
			return gave, err
		}
		dst := make([]byte, 4*graphtest.Width*hops[i].cut)
		if _, err = r.x.Output(r.of, dst); err != nil {
			return gave, err
		}
		gave = append(gave, graphtest.Words(dst))
		ended()
		if more && !pipelined {
			err = r.x.Send(next)
		}
	}
	return gave, err
}

// lateRecords makes records of steps as soon as it is known what they took.
type lateRecords struct {
	*rig
	rec  *Recorder
	held []*Snapshot
	told []trace.Step
}

// late is a rig whose steps take times of their own.
func late(t testing.TB) *lateRecords {
	r := newRig(t, fake.Options{NoLog: true, Info: gpu.AdapterInfo{Name: "GPU"}})
	r.dev.Duration = func(_ string, x, y, z uint32) int64 { return int64(x*y*z) * 1000 }
	return &lateRecords{rig: r, rec: NewRecorder(r.x)}
}

// take takes in the snapshot of the last step that ended.
func (l *lateRecords) take(s *Snapshot) {
	l.held = append(l.held, s)
	l.tell()
}

func (l *lateRecords) tell() {
	if !l.x.Settled() {
		return
	}
	for _, s := range l.held {
		_, step := s.Record()
		l.told = append(l.told, step)
	}
	l.held = nil
}

// spans are what the GPU was at each step, in ns; 0 where it is not known.
func spans(told []trace.Step) (list []int64) {
	for i := range told {
		ns := int64(0)
		if told[i].GPU != nil {
			ns, _ = told[i].GPU.SpanNS.NS()
		}
		list = append(list, ns)
	}
	return list
}

func drawHops(t *rapid.T) []hop {
	sizes := rapid.SampledFrom([]int{1, 1, 1, 2, 7, 300})
	hops := make([]hop, rapid.IntRange(1, 8).Draw(t, "hops"))
	for i := range hops {
		h := &hops[i]
		h.rows = sizes.Draw(t, "rows")
		h.cut = rapid.IntRange(1, h.rows).Draw(t, "cut")
		h.fed = i > 0 && hops[i-1].cut >= h.rows && rapid.Bool().Draw(t, "fed")
	}
	return hops
}

// Whatever the shapes, and whether its data comes from the host or from the step before, a step gives the
// same one by one, prepared ahead, and pipelined; and its record is the same, and what it took on the GPU,
// whichever steps bring that to the host.
func TestPipelinedStepsMatchSingleSteps(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		hops := drawHops(rt)
		resolves := rapid.SliceOfN(rapid.Bool(), len(hops), len(hops)).Draw(rt, "resolves")
		var want [][]uint32
		var told []trace.Step
		var took []int64
		for _, way := range []string{"one by one", "ahead", "pipelined"} {
			r := late(t)
			r.x.sheets.every = time.Hour
			if way == "one by one" {
				want = r.oneByOne(t, hops, func() { r.take(r.rec.Snapshot()) })
				told, took = bare(r.told), spans(r.told)
				continue
			}
			n := 0
			gave, err := r.ahead(hops, way == "pipelined", func() func() {
				s := r.rec.Shapes()
				if resolves[n] { // the next step that is prepared
					r.x.sheets.resolved = time.Time{}
				}
				n++
				return func() { s.Times(); r.take(s) }
			})
			if err == nil {
				err = r.x.Abandon()
				r.tell()
			}
			if err != nil {
				rt.Fatalf("%s: %v", way, err)
			}
			if d := cmp.Diff(want, gave); d != "" {
				rt.Fatalf("%s of %v:\n%s", way, hops, d)
			}
			for i, s := range r.told {
				if s.Pipelined != (way == "pipelined" && i > 0) {
					rt.Errorf("%s: step %d is pipelined: %t", way, i, s.Pipelined)
				}
			}
			if d := cmp.Diff(took, spans(r.told)); d != "" {
				rt.Fatalf("%s of %v: ns\n%s", way, hops, d)
			}
			if d := cmp.Diff(told, bare(r.told)); d != "" {
				rt.Fatalf("%s of %v: records\n%s", way, hops, d)
			}
			if !r.x.Stands() {
				rt.Fatalf("%s: the last step does not stand", way)
			}
		}
	})
}

// bare are records of steps without their times.
func bare(told []trace.Step) (list []trace.Step) {
	for _, step := range told {
		step.CPU, step.GPU, step.Resize.NS, step.Cold = trace.CPU{}, nil, trace.Time{}, false
		step.Pipelined = false
		for i := range step.Dispatches {
			step.Dispatches[i] = trace.StepDispatch{Plan: step.Dispatches[i].Plan}
		}
		for _, p := range step.Resize.Passes {
			for i := range p.Hooks {
				p.Hooks[i].NS = trace.Time{}
			}
		}
		list = append(list, step)
	}
	return list
}

// What the device hears, and in which order: the next step is recorded, and pipelined also submitted, before
// anybody waits; params are written with it, and a step that is fed by the device has no other write.
func TestStepsInFlightReachTheDeviceInOrder(t *testing.T) {
	hops := []hop{{rows: 7, cut: 7}, {rows: 7, cut: 6, fed: true}, {rows: 6, cut: 6}}
	for pipelined, want := range map[bool]string{
		false: "params record x submit params record flush wait read submit " +
			"params record flush wait read x submit wait read",
		true: "params record x submit params record submit wait read params record x submit wait read wait read",
	} {
		r := newRig(t, fake.Options{Info: gpu.AdapterInfo{Name: "GPU"}})
		r.dev.ResetCounts()
		if _, err := r.ahead(hops, pipelined, func() func() { return func() {} }); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range r.dev.Log {
			switch c.Kind {
			case fake.Write:
				got = append(got, c.Label)
			case fake.Begin:
				got = append(got, "record")
			case fake.Submit, fake.Wait, fake.Flush:
				got = append(got, strings.ToLower(c.Kind.String()))
			case fake.Read:
				got = append(got, "read")
			}
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("pipelined %t:\n%s, want\n%s", pipelined, s, want)
		}
	}
}

// Where steps are given up, or fail wherever they are, nothing runs that was not sent, the last step is not
// there to be run again, and the next one is right. What a step took on the GPU is told as it was or, where
// that failed to come, not at all.
func TestCancelledStepsLeaveTheNextCorrect(t *testing.T) {
	hops := []hop{
		{rows: 7, cut: 7}, {rows: 7, cut: 6, fed: true}, {rows: 6, cut: 5, fed: true}, {rows: 1, cut: 1},
	}
	no := errors.New("no")
	whole := late(t)
	whole.oneByOne(t, hops, func() { whole.take(whole.rec.Snapshot()) })
	want := spans(whole.told)
	run := func(name string, every time.Duration, pipelined bool, kind fake.Kind, n int) (failed bool) {
		r := late(t)
		r.x.sheets.every = every
		var last *Snapshot
		r.dev.FailNth(kind, n, no)
		_, err := r.ahead(hops, pipelined, func() func() {
			last = r.rec.Shapes()
			return func() { last.Times(); r.take(last); last = nil }
		})
		if last != nil {
			last.Drop()
		}
		if lost := r.x.Abandon(); err == nil {
			err = lost
		} else if lost != nil {
			t.Fatalf("%s: %v", name, lost)
		}
		if err == nil {
			return false // there are fewer calls
		}
		if !errors.Is(err, no) {
			t.Fatalf("%s: %v", name, err)
		}
		if r.x.at(prepared) != nil || r.x.at(sent) != nil || !r.x.Settled() {
			t.Fatalf("%s: a step is still on its way", name)
		}
		r.tell()
		for i, ns := range spans(r.told) {
			// all that failed was to resolve
			lost := kind == fake.ReadTimestamps || len(r.told) == len(hops)
			if ns != want[i] && !(lost && ns == 0) {
				t.Errorf("%s: step %d took %d ns, want %d", name, i, ns, want[i])
			}
		}
		if err := r.x.Replay(context.Background()); r.x.Stands() != (err == nil) {
			t.Errorf("%s: replay: %v", name, err)
		}
		r.mustStep(t, 9, 4)
		_, step := r.rec.Snapshot().Record()
		if step.SymInts["n"] != 4 || len(step.Dispatches) != len(r.x.live.Active()) {
			t.Errorf("%s: the record says %v", name, step.SymInts)
		}
		return true
	}
	for _, pipelined := range []bool{false, true} {
		for _, kind := range []fake.Kind{
			fake.Write, fake.Begin, fake.BeginPass, fake.Run, fake.EndPass, fake.Timestamp, fake.Resolve,
			fake.Copy, fake.CopyOut, fake.Flush, fake.Submit, fake.Wait, fake.ReadTimestamps,
		} {
			for _, every := range []time.Duration{0, time.Hour} {
				for n := 1; ; n++ {
					name := fmt.Sprintf("pipelined %t, %v %d, resolved every %v", pipelined, kind, n, every)
					if !run(name, every, pipelined, kind, n) {
						break
					}
				}
			}
		}
	}
}

// A sheet that is full comes to the host before its time, and no step waits for the other one.
func TestSheetsTakeTurns(t *testing.T) {
	for _, pipelined := range []bool{false, true} {
		r := late(t)
		r.x.sheets.every = time.Hour
		hops := slices.Repeat([]hop{{rows: 7, cut: 7, fed: true}}, 3*sheetLines+2)
		most := 0
		_, err := r.ahead(hops, pipelined, func() func() {
			s := r.rec.Shapes()
			return func() {
				s.Times()
				r.take(s)
				most = max(most, len(r.held))
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		// the first comes at once, for nothing came before it
		if most != sheetLines-1 || len(r.told) != 3*sheetLines+1 {
			t.Errorf("pipelined %t: %d records waited for their times, %d were made", pipelined, most,
				len(r.told))
		}
		if err := r.x.Abandon(); err != nil {
			t.Fatal(err)
		}
		r.tell()
		if _, _, ok := r.x.SpanNS(); !ok {
			t.Errorf("pipelined %t: what the last step took is not known", pipelined)
		}
		if err := r.x.Prepare(context.Background(), r.input(7, 7), TimingStep); err != nil {
			t.Fatal(err)
		}
		if r.x.last.line() != nil {
			t.Errorf("pipelined %t: the last step waits for the times of another", pipelined)
		}
		list := spans(r.told)
		if len(list) != len(hops) || slices.Min(list) != slices.Max(list) || list[0] <= 0 {
			t.Errorf("pipelined %t: steps took %v", pipelined, list)
		}
		for i := 1; i < len(r.told); i++ {
			before, _ := r.told[i-1].GPU.StartNS.NS()
			if at, ok := r.told[i].GPU.StartNS.NS(); !ok || at <= before {
				t.Errorf("pipelined %t: step %d begins at %d, the one before at %d", pipelined, i, at, before)
			}
		}
	}
}

// Steps that are given up while a sheet is on its way leave those that have ended with their times, and the
// clock has learnt by each of these.
func TestEndedStepsKeepTimesWhenOthersAreCancelled(t *testing.T) {
	r := late(t)
	r.x.sheets.every, r.x.sheets.resolved = time.Hour, time.Now()
	before := r.x.Clock().Samples
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := r.ahead(slices.Repeat([]hop{{rows: 7, cut: 7}}, 3), false, func() func() {
		s := r.rec.Shapes()
		return func() { s.Times(); r.take(s) }
	})
	must(err)
	if _, _, ok := r.x.SpanNS(); ok || r.x.Settled() || len(r.told) > 0 {
		t.Error("the steps' times are known before they came")
	}
	ctx, in := context.Background(), r.input(7, 7)
	r.x.sheets.resolved = time.Time{}
	must(errors.Join(r.x.Prepare(ctx, in, TimingStep), r.x.Send(in), r.x.Prepare(ctx, in, TimingStep)))
	must(r.x.Abandon())
	r.tell()
	if list := spans(r.told); len(list) != 3 || slices.Min(list) <= 0 {
		t.Errorf("steps took %v", list)
	}
	if n := r.x.Clock().Samples - before; n != 3 {
		t.Errorf("the clock has learnt by %d steps", n)
	}
}

// A step that stands alone has its times when it ends, and so have those behind which the host took its time.
func TestDistantStepsHaveTheirTimesImmediately(t *testing.T) {
	r := late(t)
	for range 3 {
		in := r.input(7, 7)
		err := errors.Join(r.x.Prepare(context.Background(), in, TimingStep), r.x.Send(in), r.x.Finish())
		if err != nil {
			t.Fatal(err)
		}
		if _, _, ok := r.x.SpanNS(); !ok || !r.x.Settled() {
			t.Error("what the step took is not known")
		}
		time.Sleep(resolveEvery)
	}
}

func TestStagesOutOfOrderAreRefused(t *testing.T) {
	r := newRig(t, fake.Options{})
	ctx, in := context.Background(), r.input(7, 7)
	refused := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, errFlight) {
			t.Errorf("%s: %v", what, err)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	refused("send of nothing", r.x.Send(in))
	refused("finish of nothing", r.x.Finish())
	refused("params of nothing", r.x.Flush())
	must(r.x.Prepare(ctx, in, TimingOff))
	refused("finish of what was not sent", r.x.Finish())
	refused("a second to be prepared", r.x.Prepare(ctx, in, TimingOff))
	must(r.x.Send(in))
	must(r.x.Prepare(ctx, in, TimingOff))
	must(r.x.Send(in))
	refused("a third on its way", r.x.Prepare(ctx, in, TimingOff))
	if err := r.x.Replay(ctx); !errors.Is(err, ErrNoStep) {
		t.Errorf("replay: %v", err)
	}
	r.mustStep(t, 5, 5) // which gives them up
	if r.x.at(sent) != nil || !r.x.Stands() {
		t.Error("a step gave up nothing")
	}
	in.Inputs[0].From = &r.in
	for want, from := range map[string]graph.ValueID{"not an output": r.in, "value -1": graph.None} {
		in.Inputs[0].From = &from
		if err := r.x.Prepare(ctx, in, TimingOff); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("fed by value %d: %v", from, err)
		}
	}
	big := r.input(graphtest.Rows, graphtest.Rows)
	big.Inputs[0].From, big.Inputs[0].Dims = &r.of, []int{graphtest.Rows + 1, graphtest.Width}
	if err := r.x.Prepare(ctx, big, TimingOff); err == nil {
		t.Error("a step of more rows than there are was prepared")
	}
	if !r.x.CanPrepare(TimingStep) || r.x.CanPrepare(TimingBlock) {
		t.Error("a small step can be prepared, a block cannot be timed so")
	}
	r.x.rates = rates{1e9, 1e9, 1} // every operator looks long
	if r.x.CanPrepare(TimingOff) {
		t.Error("a step of several submits can be prepared")
	}
}

// The host's time is booked where it passed: what is done for the next step while the GPU is at this one is
// this step's, and overlaps. All parts of all steps are no more than the time that passed.
func TestTimesOfStepsInFlightAddUp(t *testing.T) {
	for _, pipelined := range []bool{false, true} {
		r := newRig(t, fake.Options{Info: gpu.AdapterInfo{Type: gpu.Discrete}})
		r.x.sheets.every = 0
		r.mustStep(t, 7, 7)
		var parts, totals int64
		n := 0
		hops := slices.Repeat([]hop{{rows: 7, cut: 7, fed: true}}, 10)
		_, err := r.ahead(hops, pipelined, func() func() {
			return func() {
				s := &r.x.last.stepLog
				parts += s.resize + s.upload + s.encode + s.submit + s.wait
				totals += s.total
				last := n == len(hops)-1
				if n++; (s.overlapped > 0) == last || s.overlapped > s.resize+s.upload+s.encode+s.submit {
					t.Errorf("step %d: %d ns overlap", n, s.overlapped)
				}
				if s.total <= 0 || s.start.After(s.ended) || s.submits != 1 {
					t.Errorf("step %d: %+v", n, s)
				}
				if _, before, ok := r.x.SpanNS(); !ok || before < 0 {
					t.Errorf("step %d: the GPU begins %d ns behind its begin", n, before)
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if parts > totals {
			t.Errorf("pipelined %t: parts of %d ns in %d", pipelined, parts, totals)
		}
	}
}

// A host that was held up finds two steps over at once. The second did not take next to nothing for that: no
// step takes less than the GPU was at it.
func TestStepObservedLateKeepsItsOwnTime(t *testing.T) {
	r := newRig(t, fake.Options{Info: gpu.AdapterInfo{Type: gpu.Discrete}})
	r.dev.Duration = func(string, uint32, uint32, uint32) int64 { return 1e8 }
	hops := slices.Repeat([]hop{{rows: 7, cut: 7, fed: true}}, 4)
	for _, every := range []time.Duration{0, time.Hour} {
		r.x.sheets.every = every
		rec := &lateRecords{rig: r, rec: NewRecorder(r.x)}
		_, err := r.ahead(hops, true, func() func() {
			s := rec.rec.Shapes()
			return func() { s.Times(); rec.take(s) }
		})
		if err := errors.Join(err, r.x.Abandon()); err != nil {
			t.Fatal(err)
		}
		rec.tell()
		for i, span := range spans(rec.told) {
			s := &rec.told[i]
			if total, _ := s.CPU.TotalNS.NS(); span < 1e8 || s.Pipelined && total < span {
				t.Errorf("pipelined %t: %d ns, of which the GPU was at it for %d", s.Pipelined, total, span)
			}
		}
	}
}

func TestStepsOnTheirWayAllocateNothing(t *testing.T) {
	r := newRig(t, fake.Options{NoLog: true})
	r.dev.OnDispatch = nil
	ctx := context.Background()
	inputs := []*graph.StepInput{r.input(1, 1), r.input(1, 1)}
	for _, in := range inputs {
		in.Inputs[0].From = &r.of
	}
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(errors.Join(r.x.Prepare(ctx, inputs[0], TimingStep), r.x.Send(inputs[0])))
	step := func() {
		must(r.x.Prepare(ctx, inputs[1], TimingStep))
		must(r.x.Send(inputs[1]))
		must(r.x.Finish())
	}
	for range 10 {
		step()
	}
	if n := testing.AllocsPerRun(50, step); n > 0 {
		t.Errorf("%v allocations a step", n)
	}
}
