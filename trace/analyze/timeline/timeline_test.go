package timeline_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/timeline"
	"gpuscope/trace/tracetest"
)

func of(t *trace.Trace) *timeline.Timeline { return timeline.New(analyze.NewIndex(t)) }

// track names a track on which slices may not overlap.
type track struct {
	name string
	lane int
}

// all returns copies of all steps.
func all(l *timeline.Timeline) (steps []timeline.Step) {
	for s := range l.Steps(0) {
		c := *s
		c.Host, c.GPU = slices.Clone(s.Host), slices.Clone(s.GPU)
		steps = append(steps, c)
	}
	return steps
}

// overlap returns two drawn slices of one track that are neither nested nor 1 ns apart.
func overlap(steps []timeline.Step) (a, b timeline.Slice, found bool) {
	tracks := map[track][]timeline.Slice{}
	for i := range steps {
		for _, s := range slices.Concat(steps[i].Host, steps[i].GPU) {
			at := track{"queue", s.Lane}
			switch s.Kind {
			case timeline.StepSlice, timeline.PhaseSlice:
				at.name = "host"
			case timeline.SpanSlice:
				at.name = "spans"
			}
			if s.Drawn() {
				tracks[at] = append(tracks[at], s)
			}
		}
	}
	for _, list := range tracks {
		slices.SortStableFunc(list, func(a, b timeline.Slice) int {
			if a.From != b.From {
				return int(min(1, max(-1, a.From-b.From)))
			}
			return int(min(1, max(-1, b.To-a.To)))
		})
		var open []timeline.Slice
		for _, s := range list {
			for len(open) > 0 && open[len(open)-1].To < s.From {
				open = open[:len(open)-1]
			}
			if n := len(open); n > 0 {
				outer := open[n-1]
				if s.Kind != timeline.PhaseSlice || outer.Kind != timeline.StepSlice || s.To >= outer.To {
					return outer, s, true
				}
			}
			open = append(open, s)
		}
	}
	return a, b, false
}

func TestSlicesOfATrackNeverOverlap(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		tr := tracetest.Random(r)
		if rapid.Bool().Draw(r, "short") {
			shorten(tr, rapid.Int64Range(1, 50).Draw(r, "longest"))
		}
		l := of(tr)
		steps := all(l)
		if a, b, found := overlap(steps); found {
			r.Fatalf("two slices overlap: %+v and %+v", a, b)
		}
		for i := range steps {
			s := &steps[i]
			for _, slice := range slices.Concat(s.Host, s.GPU) {
				if slice.From < 0 || slice.To < slice.From || slice.To > timeline.AxisEnd ||
					slice.To-slice.From > max(0, slice.NS) || slice.Lane >= timeline.MaxLanes {
					r.Fatalf("step %d has the slice %+v", i, slice)
				}
			}
			if s.From > s.To || s.To > l.End {
				r.Fatalf("step %d is from %d to %d, and the axis ends at %d", i, s.From, s.To, l.End)
			}
		}
	})
}

// shorten makes all times of a trace small, so that many slices begin and end at the same instants.
func shorten(tr *trace.Trace, longest int64) {
	for i := range tr.Steps {
		s := &tr.Steps[i]
		short := func(list ...*trace.Time) {
			for _, t := range list {
				if ns, ok := t.NS(); ok {
					*t = trace.Measured(ns % longest)
				}
			}
		}
		c := &s.CPU
		short(&c.ResizeNS, &c.UploadNS, &c.EncodeNS, &c.SubmitNS, &c.WaitNS, &c.SampleNS, &c.TotalNS,
			&c.StartNS, &c.SubmittedNS)
		if s.GPU != nil {
			short(&s.GPU.StartNS, &s.GPU.SpanNS)
		}
		for j := range s.Dispatches {
			short(&s.Dispatches[j].StartNS, &s.Dispatches[j].GPUNS)
		}
		for j := range s.Blocks {
			short(&s.Blocks[j].StartNS, &s.Blocks[j].GPUNS)
		}
	}
}

func TestEachMeasuredTimeHasOneSlice(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		tr := tracetest.Random(r)
		for i, s := range all(of(tr)) {
			rec := &tr.Steps[i]
			var want, got []int64
			for _, time := range []trace.Time{
				rec.CPU.ResizeNS, rec.CPU.UploadNS, rec.CPU.EncodeNS, rec.CPU.SubmitNS, rec.CPU.WaitNS,
				rec.CPU.SampleNS,
			} {
				if ns, ok := time.NS(); ok && ns > 0 {
					want = append(want, ns)
				}
			}
			if ns, ok := rec.CPU.TotalNS.NS(); ok {
				want = append(want, ns)
			}
			if rec.Timing == trace.TimingBlock && len(rec.Blocks) > 0 {
				for _, b := range rec.Blocks {
					if ns, ok := b.GPUNS.NS(); ok {
						want = append(want, ns)
					}
				}
			} else {
				for _, d := range rec.Dispatches {
					if ns, ok := d.GPUNS.NS(); ok {
						want = append(want, ns)
					}
				}
			}
			if ns, ok := analyze.GPUOf(rec).SpanNS.NS(); ok {
				want = append(want, ns)
			}
			for _, slice := range slices.Concat(s.Host, s.GPU) {
				got = append(got, slice.NS)
			}
			slices.Sort(want)
			slices.Sort(got)
			if !slices.Equal(got, want) {
				r.Fatalf("step %d has slices of %d ns, want %d", i, got, want)
			}
		}
	})
}

// step returns a timed step whose host part lasts from start for 1000 ns, and whose dispatches have the given
// starts and durations.
func step(index int, start int64, dispatches ...[2]int64) trace.Step {
	s := trace.Step{
		Index: index, Phase: trace.Decode, Timing: trace.TimingDispatch,
		CPU: trace.CPU{
			StartNS: trace.Measured(start), SubmitNS: trace.Measured(10), TotalNS: trace.Measured(1000),
			WaitNS: trace.Measured(990),
		},
	}
	for _, d := range dispatches {
		s.Dispatches = append(s.Dispatches, trace.StepDispatch{
			StartNS: trace.Measured(d[0]), GPUNS: trace.Measured(d[1]),
		})
	}
	if len(dispatches) > 0 {
		s.GPU = &trace.GPU{StartNS: trace.Measured(dispatches[0][0])}
	}
	return s
}

// tiny returns the tiny trace with other steps.
func tiny(steps ...trace.Step) *trace.Trace {
	tr := tracetest.Tiny()
	tr.Steps = steps
	return tr
}

type drawn struct {
	from, to, ns int64
	lane         int
}

func draw(list []timeline.Slice) (d []drawn) {
	for _, s := range list {
		d = append(d, drawn{s.From, s.To, s.NS, s.Lane})
	}
	return d
}

func TestSlicesAreNestedOrApart(t *testing.T) {
	t.Parallel()
	steps := all(of(tiny(
		step(0, 5000, [2]int64{5100, 100}, [2]int64{5200, 50}, [2]int64{5249, 0}, [2]int64{5249, 21},
			[2]int64{5260, 40}, [2]int64{5280, 720}),
		step(1, 6000, [2]int64{6000, 1}, [2]int64{6001, 10}),
		step(2, 7000),
	)))
	// The axis starts at 5000. Step 0 ends where step 1 starts. The last phase of a step ends with the step.
	check := func(what string, list []timeline.Slice, want ...drawn) {
		t.Helper()
		if got := draw(list); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	check("host of step 0", steps[0].Host,
		drawn{0, 999, 1000, 0}, drawn{0, 9, 10, 0}, drawn{10, 998, 990, 0})
	check("host of step 2", steps[2].Host,
		drawn{2000, 3000, 1000, 0}, drawn{2000, 2009, 10, 0}, drawn{2010, 2999, 990, 0})
	check("GPU of step 0", steps[0].GPU, []drawn{
		{100, 199, 100, 0}, // the next one starts at its end
		{200, 248, 50, 0},  // the next one starts 1 ns before its end
		{249, 249, 0, 0},   // 0 ns: only a mark
		{249, 270, 21, 0},
		{260, 300, 40, 1},  // the previous one is running
		{280, 999, 720, 0}, // ends at the start of the next step
	}...)
	// 1 ns cannot be drawn shorter, so the next one needs another lane.
	check("GPU of step 1", steps[1].GPU, drawn{1000, 1001, 1, 0}, drawn{1001, 1011, 10, 1})
	if len(steps[2].GPU) != 0 {
		t.Errorf("a step without dispatches has GPU slices: %v", steps[2].GPU)
	}
}

func TestStepsWithoutStartsFollowEachOther(t *testing.T) {
	t.Parallel()
	tr := tiny(
		trace.Step{Dispatches: []trace.StepDispatch{
			{GPUNS: trace.Measured(30)},
			{},
			{GPUNS: trace.Measured(20)},
		}},
		trace.Step{CPU: trace.CPU{TotalNS: trace.Measured(5)}},
		trace.Step{Dispatches: []trace.StepDispatch{{GPUNS: trace.Measured(7)}}},
	)
	l := of(tr)
	steps := all(l)
	if l.Placed || steps[0].Placed || steps[0].GPUPlaced {
		t.Errorf("steps without a start are placed")
	}
	for i, want := range [][]drawn{{{0, 29, 30, 0}, {30, 50, 20, 0}}, nil, {{55, 62, 7, 0}}} {
		if got := draw(steps[i].GPU); !slices.Equal(got, want) {
			t.Errorf("GPU of step %d: %v, want %v", i, got, want)
		}
	}
	if got, want := draw(steps[1].Host), []drawn{{50, 54, 5, 0}}; !slices.Equal(got, want) {
		t.Errorf("host of step 1: %v, want %v", got, want)
	}
	if steps[0].GPU[1].At != 2 {
		t.Errorf("the second slice is dispatch %d, want 2", steps[0].GPU[1].At)
	}
}

func TestHostStartsBeforeTheGPUIfOnlyThatWasMeasured(t *testing.T) {
	t.Parallel()
	s := step(0, 0, [2]int64{5, 50})
	s.CPU.StartNS = trace.Time{}
	got := all(of(tiny(s)))[0]
	if got.Placed || !got.GPUPlaced || got.Start != 0 || got.GPU[0].From != 10 {
		t.Errorf("the host starts at %d, the GPU at %d, with a submit of 10 ns", got.Start, got.GPU[0].From)
	}
}

func TestGPUNeverStartsBeforeTheSubmit(t *testing.T) {
	t.Parallel()
	s := step(0, 100, [2]int64{90, 50})
	s.CPU.SubmittedNS = trace.Measured(110)
	l := of(tiny(s))
	got := all(l)[0]
	if l.Shifted != 1 || got.ShiftNS != 20 || got.GPU[0].From != 10 || got.GPU[0].NS != 50 {
		t.Errorf("%d steps are shifted, by %d ns: %+v", l.Shifted, got.ShiftNS, got.GPU)
	}
}

func TestARestartedClockGoesOn(t *testing.T) {
	t.Parallel()
	l := of(tiny(step(0, 5000, [2]int64{5100, 100}), step(1, 200, [2]int64{300, 100})))
	steps := all(l)
	dispatch := steps[1].GPU[0].From
	if l.Placed || !steps[1].Placed || steps[1].From != 1000 || dispatch != 1100 {
		t.Errorf("placed %t, second step at %d, its dispatch at %d", l.Placed, steps[1].From, dispatch)
	}
}

func TestStepsBeginAnywhere(t *testing.T) {
	t.Parallel()
	tr := tracetest.Llama(2, 6)
	l := of(tr)
	steps := all(l)
	for s := range l.Steps(4) {
		if want := &steps[s.At]; s.From != want.From || !slices.Equal(s.GPU, want.GPU) ||
			!slices.Equal(s.Host, want.Host) {
			t.Errorf("step %d differs if the steps before it are left out", s.At)
		}
	}
	launch := l.Launch(&steps[5], &steps[5].GPU[1])
	if p := tr.Plans[tr.Steps[5].Dispatches[steps[5].GPU[1].At].Plan]; launch.Plan.ID != p.ID ||
		launch.Kernel.Name != p.Kernel || launch.Dispatch.ID != p.Dispatch ||
		launch.Op.ID != launch.Dispatch.Op {
		t.Errorf("the launch is %+v, want that of plan %d", launch, p.ID)
	}
}

func BenchmarkSteps(b *testing.B) {
	tr := tracetest.Llama(22, 2000)
	x := analyze.NewIndex(tr)
	n := 0
	for b.Loop() {
		n = 0
		for s := range timeline.New(x).Steps(0) {
			n += len(s.Host) + len(s.GPU)
		}
	}
	b.ReportMetric(float64(n), "slices")
}
