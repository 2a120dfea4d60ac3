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

// hop is a step of a chain: its input rows, the rows that it keeps, and whether its input is the output of
// the previous step.
type hop struct {
	rows, cut int
	fed       bool
}

// chainInput returns the input of a hop. It uses data unless the input is on the device.
func (r *rig) chainInput(h hop, data []byte) *graph.StepInput {
	in := r.input(h.rows, h.cut)
	in.Inputs[0].Data = data
	if h.fed {
		in.Inputs[0].From = &r.of
	}
	return in
}

// oneByOne returns the output of each hop if every step finishes before the next begins.
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

// ahead returns the same outputs, but prepares each step before the previous one has finished, and if
// pipelined also submits it. It calls each when the shapes of a step are current, and calls the returned
// function when that step has ended.
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

// lateRecords makes the record of each step as soon as its GPU time is known.
type lateRecords struct {
	*rig
	rec  *Recorder
	held []*Snapshot
	told []trace.Step
}

// late returns a rig whose steps have different durations.
func late(t testing.TB) *lateRecords {
	r := newRig(t, fake.Options{NoLog: true, Info: gpu.AdapterInfo{Name: "GPU"}})
	r.dev.Duration = func(_ string, x, y, z uint32) int64 { return int64(x*y*z) * 1000 }
	return &lateRecords{rig: r, rec: NewRecorder(r.x)}
}

// take adds the snapshot of the step that ended last.
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

// spans returns the GPU time of each step in ns, or 0 if it is not known.
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

// For any shapes, and with input from the host or from the previous step, a step gives the same output when
// it runs alone, prepared ahead, or pipelined. Its record and its GPU time are also the same, whichever steps
// copy the timestamps to the host.
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
				if resolves[n] { // for the next step that is prepared
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
				rt.Fatalf("%s: the last step cannot be replayed", way)
			}
		}
	})
}

// bare returns records of steps without their times.
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

// Checks the order of the device calls. The next step is recorded, and if pipelined also submitted, before
// the host waits. Its params are written then, and a step whose input is on the device has no other write.
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

// If steps are abandoned, or fail at any call, no unsent step runs, the last step cannot be replayed, and the
// next step is correct. A step's GPU time is reported correctly or, if it could not be read, not at all.
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
			return false // the steps have fewer calls of this kind
		}
		if !errors.Is(err, no) {
			t.Fatalf("%s: %v", name, err)
		}
		if r.x.at(prepared) != nil || r.x.at(sent) != nil || !r.x.Settled() {
			t.Fatalf("%s: a step is still in flight", name)
		}
		r.tell()
		for i, ns := range spans(r.told) {
			// A time may be missing only if resolving the timestamps failed.
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
			t.Errorf("%s: the record has %v", name, step.SymInts)
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

// A full sheet of timestamps is copied to the host early, and no step waits for the other sheet.
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
		// The first times are copied at once, because no copy came before them.
		if most != sheetLines-1 || len(r.told) != 3*sheetLines+1 {
			t.Errorf("pipelined %t: %d records waited for their times, %d were made", pipelined, most,
				len(r.told))
		}
		if err := r.x.Abandon(); err != nil {
			t.Fatal(err)
		}
		r.tell()
		if _, _, ok := r.x.SpanNS(); !ok {
			t.Errorf("pipelined %t: the GPU time of the last step is not known", pipelined)
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

// If steps are abandoned while a sheet is being copied, the steps that have ended keep their times, and each
// of them calibrates the clock.
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
		t.Error("the steps' times are known before they were copied")
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
		t.Errorf("%d steps calibrated the clock", n)
	}
}

// A step that runs alone has its times when it ends. So does a step after which the host was busy for a
// while.
func TestDistantStepsHaveTheirTimesImmediately(t *testing.T) {
	r := late(t)
	for range 3 {
		in := r.input(7, 7)
		err := errors.Join(r.x.Prepare(context.Background(), in, TimingStep), r.x.Send(in), r.x.Finish())
		if err != nil {
			t.Fatal(err)
		}
		if _, _, ok := r.x.SpanNS(); !ok || !r.x.Settled() {
			t.Error("the GPU time of the step is not known")
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
	r.mustStep(t, 5, 5) // abandons the steps in flight
	if r.x.at(sent) != nil || !r.x.Stands() {
		t.Error("a step did not abandon the steps in flight")
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
		t.Error("a step with too many rows was prepared")
	}
	if !r.x.CanPrepare(TimingStep) || r.x.CanPrepare(TimingBlock) {
		t.Error("want a small step to be preparable, but not with timed blocks")
	}
	r.x.rates = rates{1e9, 1e9, 1} // every operator is expected to take long
	if r.x.CanPrepare(TimingOff) {
		t.Error("a step of several submits can be prepared")
	}
}

// The host's time counts for the step during which it passed: preparing the next step while the GPU runs this
// one is this step's time, and overlaps. The parts of all steps add up to at most the elapsed time.
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
					t.Errorf("step %d: the GPU starts %d ns after the step", n, before)
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if parts > totals {
			t.Errorf("pipelined %t: the parts are %d ns, the steps %d", pipelined, parts, totals)
		}
	}
}

// A delayed host sees two steps end at the same time. The second step must not seem to take almost no time:
// no step is shorter than its GPU time.
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
				t.Errorf("pipelined %t: %d ns, of which the GPU ran for %d", s.Pipelined, total, span)
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
