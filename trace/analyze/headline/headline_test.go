package headline_test

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/analyzetest"
	"gpuscope/trace/analyze/costs"
	"gpuscope/trace/analyze/headline"
	"gpuscope/trace/tracetest"
)

func of(t *testing.T, tr *trace.Trace) *headline.Headline {
	t.Helper()
	x := analyze.NewIndex(tr)
	h, err := headline.Of(context.Background(), x, headline.Steps(x))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// costed returns a trace whose last step has costs. Each decode step takes 4 ms, of which 3 ms are GPU time.
func costed(t *testing.T) *trace.Trace {
	t.Helper()
	tr := tracetest.Llama(2, 6)
	if err := analyzetest.Cost(tr, len(tr.Steps)-1); err != nil {
		t.Fatal(err)
	}
	tr.Observer = nil
	for i := range tr.Steps[1:5] {
		s := &tr.Steps[1+i]
		s.Timing = trace.TimingStep
		for k := range s.Dispatches {
			s.Dispatches[k].GPUNS, s.Dispatches[k].StartNS = trace.Time{}, trace.Time{}
		}
		s.CPU.TotalNS, s.GPU.SpanNS = trace.Measured(4e6), trace.Measured(3e6)
		s.CPU.EncodeNS = trace.Measured(1e6)
	}
	return tr
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Abs(b) }

func TestCostsDecideWhatToFixFirst(t *testing.T) {
	t.Parallel()
	tr := costed(t)
	h := of(t, tr)
	x := analyze.NewIndex(tr)
	tree, err := x.DispatchTree(context.Background(), analyze.Options{Selection: headline.Steps(x)})
	if err != nil {
		t.Fatal(err)
	}
	first, most, what := tree.Most()
	if h.Basis != headline.Costs || h.First == nil || h.First.At != first || what != "~save" ||
		h.First.SaveNS != most {
		t.Fatalf("headline %+v, want row %d with the saving %g (%s)", h, first, most, what)
	}
	c := tree.Grouped[first].Cost
	if h.First.NS != float64(c.NS) || h.First.ErrorNS != 600 || h.First.Share != c.Share || h.CostStep != 5 ||
		h.Rounds != analyzetest.Rounds {
		t.Errorf("first %+v of step %d in %d rounds, want the cost %+v", h.First, h.CostStep, h.Rounds, c)
	}
	if h.Rate != 250 || h.Pace.Unit() != "tokens/s" {
		t.Errorf("rate %g %s, want 250 tokens/s", h.Rate, h.Pace.Unit())
	}
	if want := 1e9 / (4e6 - c.Share/2*3e6); !near(h.First.Twice, want) {
		t.Errorf("twice as fast: %g tokens/s, want %g", h.First.Twice, want)
	}
	whole := float64(tree.Costs.Step.Whole.NS)
	if want := 1e9 / (4e6 - most/whole*3e6); !near(h.First.AtLimit, want) {
		t.Errorf("at the ceilings: %g tokens/s, want %g", h.First.AtLimit, want)
	}
}

// Where layers differ, a row is in only some of them, so its name includes its layers, as in the tables of
// costs.
func TestRowOfSomeLayersNamesThem(t *testing.T) {
	t.Parallel()
	tr := costed(t)
	same := of(t, tr).First
	layer0, layer1 := same.Dispatches[:len(same.Dispatches)/2], same.Dispatches[len(same.Dispatches)/2:]
	if len(layer0) != len(layer1) || strings.Contains(same.Name, "layer") {
		t.Fatalf("equal layers: %+v, want a row of both layers without their numbers", same)
	}
	for i := range tr.Plans { // other kernels in layer 1
		if p := &tr.Plans[i]; slices.Contains(layer1, p.Dispatch) {
			p.Kernel += "_other"
		}
	}
	tr.Steps[len(tr.Steps)-1].Costs = nil
	if err := analyzetest.Cost(tr, len(tr.Steps)-1); err != nil {
		t.Fatal(err)
	}
	first := of(t, tr).First
	want := "layer 1 " + same.Name
	if first.Name != want || !slices.Equal(first.Dispatches, layer1) {
		t.Errorf("first %+v, want %q with the dispatches %v", first, want, layer1)
	}
	x := analyze.NewIndex(tr)
	tree, err := x.DispatchTree(context.Background(), analyze.Options{Selection: headline.Steps(x)})
	if err != nil {
		t.Fatal(err)
	}
	tables := slices.Concat(costs.Parts(tree), costs.Groups(tree))
	rows := map[string]int{}
	for i := range tree.Grouped {
		if !tree.Single(i) && !tree.Grouped[i].Joint {
			continue
		}
		name := headline.Name(tree, i)
		if other, twice := rows[name]; twice {
			t.Errorf("rows %d and %d have the name %q", other, i, name)
		}
		rows[name] = i
		shown := func(r costs.Row) bool { return r.Name == name }
		if (i == first.At || tree.Single(i)) && !slices.ContainsFunc(tables, shown) {
			t.Errorf("the tables of costs have no row %q", name)
		}
	}
}

func TestIdleTimeIsFixedFirstIfLonger(t *testing.T) {
	t.Parallel()
	tr := costed(t)
	for range 20 { // enough steps to know the error of the wall time
		s := tr.Steps[4]
		s.Index = 4
		tr.Steps = slices.Insert(tr.Steps, 4, s)
	}
	for i := range tr.Steps {
		tr.Steps[i].Index = i
	}
	h := of(t, tr)
	if h.Idle == nil || h.Idle.NS != 1e6 || !near(h.Idle.Rate, 1e9/3e6) {
		t.Errorf("idle %+v, want 1 ms, without which the rate is 333 tokens/s", h.Idle)
	}
	for i := range tr.Steps {
		if s := &tr.Steps[i]; s.Timing == trace.TimingStep {
			s.GPU.SpanNS = trace.Measured(3_999_000)
		}
	}
	if h := of(t, tr); h.Idle != nil {
		t.Errorf("an idle time of 1 µs is fixed first: %+v", h.Idle)
	}
}

func TestReasonSaysWhyCostsAreNotUsed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		why    headline.Reason
		basis  headline.Basis
		change func(*trace.Trace)
	}{
		{"no costs", headline.NoCosts, headline.Isolated, func(t *trace.Trace) { t.Steps[5].Costs = nil }},
		{"few rounds", headline.FewRounds, headline.Isolated, func(t *trace.Trace) {
			for i := range t.Steps[5].Costs {
				t.Steps[5].Costs[i].N, t.Steps[5].Costs[i].OffNS = 1, trace.Time{}
			}
		}},
		{"not significant", headline.NotSignificant, headline.Isolated, func(t *trace.Trace) {
			for i := range t.Steps[5].Costs {
				t.Steps[5].Costs[i].OffNS = trace.Measured(1e6)
			}
		}},
		{"only groups significant", headline.NotSignificant, headline.Isolated, onlyGroups},
		{"no saving", headline.NoSaving, headline.Isolated, func(t *trace.Trace) {
			c := *t.Device.Ceilings // so low that no row takes longer than it needs
			c.FlopsPerS, c.CopyBytesPerS = 1, []trace.CopyRate{{Bytes: 1 << 20, PerS: 1}}
			t.Device.Ceilings = &c
		}},
		{"no times", headline.NoCosts, headline.Nothing, func(t *trace.Trace) {
			t.Steps[5].Costs = nil
			for k := range t.Steps[5].Dispatches {
				d := &t.Steps[5].Dispatches[k]
				d.GPUNS, d.StartNS, d.Samples = trace.Time{}, trace.Time{}, nil
			}
		}},
	} {
		tr := costed(t)
		c.change(tr)
		h := of(t, tr)
		if h.Why != c.why || h.Basis != c.basis || (h.First != nil) != (c.basis != headline.Nothing) {
			t.Errorf("%s: reason %d, basis %d, first %+v", c.name, h.Why, h.Basis, h.First)
		}
	}
}

// onlyGroups makes the costs of all parts insignificant except those of headings, such as layers.
func onlyGroups(t *trace.Trace) {
	s := &t.Steps[len(t.Steps)-1]
	for i := range s.Costs {
		if c := &s.Costs[i]; len(c.Dispatches) <= 8 {
			c.OffNS = trace.Measured(1e6)
		}
	}
}

func TestLargestSignificantGroupIsKept(t *testing.T) {
	t.Parallel()
	tr := costed(t)
	onlyGroups(tr)
	h := of(t, tr)
	x := analyze.NewIndex(tr)
	tree, err := x.DispatchTree(context.Background(), analyze.Options{Selection: headline.Steps(x)})
	if err != nil {
		t.Fatal(err)
	}
	want := costs.Row{Cost: &analyze.RowCost{Cost: &trace.Cost{}}}
	for _, r := range costs.Groups(tree) {
		if r.Cost.Significant() && r.Cost.NS > want.Cost.NS {
			want = r
		}
	}
	if h.Group == nil || h.Group.Key != want.Key || h.Group.Cost.NS != want.Cost.NS || want.Cost.NS == 0 {
		t.Errorf("group %+v, want %+v", h.Group, want)
	}
	for i := range tr.Steps[5].Costs {
		tr.Steps[5].Costs[i].OffNS = trace.Measured(1e6)
	}
	if h := of(t, tr); h.Why != headline.NotSignificant || h.Group != nil {
		t.Errorf("no cost is significant, but the group is %+v", h.Group)
	}
}

func TestPipelinedStepsAreNotFasterThanTheCPU(t *testing.T) {
	t.Parallel()
	tr := costed(t)
	for i := 1; i < 5; i++ {
		s := &tr.Steps[i]
		s.Pipelined = true
		s.CPU.ResizeNS, s.CPU.UploadNS, s.CPU.SubmitNS, s.CPU.SampleNS = trace.Time{}, trace.Time{},
			trace.Time{}, trace.Time{}
		s.CPU.EncodeNS, s.CPU.OverlappedNS = trace.Measured(2.5e6), trace.Time{}
	}
	x := analyze.NewIndex(tr)
	p := headline.PaceOf(x, x.Range(1, 4))
	if rate, ok := p.Faster(3e6); !ok || !near(rate, 400) {
		t.Errorf("rate %g, want that of 2.5 ms of the CPU, 400 tokens/s", rate)
	}
}

func TestPaceOfOneStepIsThatOfItsPhase(t *testing.T) {
	t.Parallel()
	tr := costed(t)
	for i := range tr.Steps[1:5] {
		tr.Steps[1+i].CPU.TotalNS = trace.Measured(4e6 + 1e6*int64(i)) // median 5.5 ms
	}
	tr.Steps[1].Cold = true // median 6 ms
	x := analyze.NewIndex(tr)
	for step, want := range map[int]int64{1: 4e6, 2: 6e6, 5: 6e6} {
		p := headline.PaceOf(x, x.Step(step))
		if ns, ok := p.Wall.NS(); !ok || ns != want {
			t.Errorf("step %d: wall time %d, %v, want %d", step, ns, ok, want)
		}
	}
}

// The times of chunks of different lengths are those of different work.
func TestPaceOfAChunkIsItsOwn(t *testing.T) {
	t.Parallel()
	tr := tracetest.Run(2, 64, 64, 10, 1)
	for i := range tr.Steps {
		tr.Steps[i].Timing, tr.Steps[i].CPU.TotalNS = trace.TimingStep, trace.Measured(1e6*int64(9-i))
		tr.Steps[i].Cold = false
	}
	x := analyze.NewIndex(tr)
	for step, want := range []int64{9e6, 8e6, 7e6, 6e6} {
		p := headline.PaceOf(x, x.Step(step))
		if ns, ok := p.Wall.NS(); !ok || ns != want {
			t.Errorf("step %d: wall time %d, %v, want %d", step, ns, ok, want)
		}
	}
}

func TestAnyTraceHasAHeadline(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		x := analyze.NewIndex(tracetest.Random(r))
		steps := headline.Steps(x)
		if len(steps.Steps) == 0 {
			return
		}
		h, err := headline.Of(context.Background(), x, steps)
		if err != nil {
			r.Fatal(err)
		}
		if (h.First == nil) != (h.Basis == headline.Nothing) || (h.Why == 0) != (h.Basis == headline.Costs) {
			r.Fatalf("headline %+v", h)
		}
		if f := h.First; f != nil && (f.Twice < 0 || math.IsNaN(f.Twice) || math.IsInf(f.Twice, 0) ||
			f.Twice > 0 && f.Twice < h.Rate) {
			r.Fatalf("first %+v at %g", f, h.Rate)
		}
	})
}
