package inspect_test

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/exp/golden"

	"gpuscope/trace"
	"gpuscope/trace/inspect"
	"gpuscope/trace/table"
	"gpuscope/trace/tracetest"
)

// oneStep is a decode step with these times in µs; a negative one was not measured.
func oneStep(wall, busy, span int64, dispatch ...int64) *inspect.StepSummary {
	at := func(us int64) trace.Time {
		if us < 0 {
			return trace.Time{}
		}
		return trace.Measured(us * 1000)
	}
	t := timed(1, 0, 0, 1)
	s := &t.Steps[1]
	s.CPU.TotalNS = at(wall)
	s.GPU = &trace.GPU{BusyNS: at(busy), SpanNS: at(span)}
	for i, us := range dispatch {
		s.Dispatches[i].GPUNS, s.Dispatches[i].Samples = at(us), nil
	}
	return inspect.NewIndex(t).Summary(1)
}

func TestSummaryOfAStepOnOneLine(t *testing.T) {
	for _, c := range []struct {
		s    *inspect.StepSummary
		want string
	}{
		{
			oneStep(9050, 3120, 3530),
			"wall 9.05 ms (decode 0.03 untimed, 0.04 timed, +32%) │ Σgpu 3.12 = ~3.11 work + ~0.01 timing" +
				" │ gaps 0.41 │ span 3.53 │ GPU idle 5.52",
		},
		{
			oneStep(9050, -1, 3530),
			"wall 9.05 ms (decode 0.03 untimed, 0.04 timed, +32%) │ Σgpu – │ gaps – │ span 3.53 │ GPU idle 5.52",
		},
		{
			oneStep(-1, -1, 3530),
			"wall – (decode 0.03 ms untimed, 0.04 timed, +32%) │ Σgpu – │ gaps – │ span 3.53 │ GPU idle –",
		},
	} {
		if got := c.s.Title().String(); got != c.want {
			t.Errorf("%s\nwant %s", got, c.want)
		}
	}
}

func TestVerdictNamesWhatBoundsAStep(t *testing.T) {
	for _, c := range []struct {
		s    *inspect.StepSummary
		want string
	}{
		{oneStep(100, 40, 49), "CPU-bound: the GPU is idle for 0.05 ms of 0.10 ms"},
		{oneStep(100, 85, 90, 80, 5), "GPU-bound: GPU span is 0.09 ms of 0.10 ms"},
		{
			oneStep(100, 40, 90, 20, 6),
			"latency-bound: 1 dispatches at the floor and the gaps are 0.06 ms of 0.09 ms GPU span",
		},
		{oneStep(100, 40, -1), ""},
		{oneStep(-1, 40, 90), ""},
	} {
		if c.s.Verdict != c.want {
			t.Errorf("%q, want %q", c.s.Verdict, c.want)
		}
	}
}

// A step that timing made three times as long says nothing of the step as it runs.
func TestNoVerdictIsDrawnFromAStepThatTimingDisturbs(t *testing.T) {
	tr := timed(1, 0, 0, 1)
	s := &tr.Steps[1]
	s.CPU.TotalNS = trace.Measured(100_000)
	s.GPU = &trace.GPU{BusyNS: trace.Measured(85_000), SpanNS: trace.Measured(90_000)}
	verdict := func() string { return inspect.NewIndex(tr).Summary(1).Verdict }
	tr.Observer = &trace.Observer{UntimedNS: trace.Measured(30_000), TimedNS: trace.Measured(90_000), N: 8}
	if got, want := verdict(), "no verdict: timing makes a decode step 3.0 times as long"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	tr.Observer = nil
	if got, want := verdict(), "GPU-bound: GPU span is 0.09 ms of 0.10 ms (as timed)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	s.Timing = "step"
	if got, want := verdict(), "GPU-bound: GPU span is 0.09 ms of 0.10 ms"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestProfileLeavesColdStepsOutUnlessThereAreNoOthers(t *testing.T) {
	tr := tracetest.Run(1, 40, 7, 1, 1)
	for i, ms := range []int64{100, 10, 2, 3} {
		tr.Steps[i].CPU.TotalNS = trace.Measured(ms * 1_000_000)
	}
	p := profile(tr)
	if r := p.Rate("prefill"); r.TokensPerS != 700 || r.Steps != 1 || r.Cold != 1 || r.OnlyCold {
		t.Errorf("prefill %+v, want the 7 tokens in 10 ms", r)
	}
	if r := p.Rate("decode"); r.TokensPerS != 400 || r.Tokens != 2 || r.LeastNS != 2e6 || r.MostNS != 3e6 {
		t.Errorf("decode %+v, want 2 tokens in 5 ms", r)
	}
	tr.Steps[1].Cold = true
	r := profile(tr).Rate("prefill")
	if r.TokensPerS < 427.2 || r.TokensPerS > 427.3 || !r.OnlyCold {
		t.Errorf("prefill %+v, want the 47 tokens in 110 ms, marked", r)
	}
	if r := p.Rate("execute"); r != nil {
		t.Errorf("execute %+v, want none", r)
	}
}

func TestProfileKeepsTimingLevelsApart(t *testing.T) {
	tr := tracetest.Run(1, 4, 1, 1, 1)
	tr.Steps[3].Timing = "off"
	for i := range tr.Steps[3].Dispatches {
		tr.Steps[3].Dispatches[i].GPUNS = trace.Time{}
	}
	p := profile(tr)
	var got []string
	for _, r := range p.Rates {
		got = append(got, r.Phase+" "+r.Timing)
	}
	if s := strings.Join(got, ", "); s != "prefill dispatch, decode dispatch, decode off" {
		t.Errorf("rates %s", s)
	}
	for _, k := range p.Kernels {
		if k.Phase == "decode" && (k.Share != 0 || k.Timed*3 != k.Count*2) {
			t.Errorf("%s: share %v, %d of %d timed, want no share and two thirds", k.Kernel, k.Share, k.Timed,
				k.Count)
		}
	}
}

// residual is add(x, f(x)) resized in the order of ExecuTorch's engine: the sum meets operands of two
// lengths, and is tried again.
func residual() *trace.Trace {
	t := tracetest.Tiny()
	g := &t.Graph
	g.Values = append(g.Values,
		trace.Value{ID: 3, Name: "sum", Kind: "tensor", DType: "f32", MaxDims: []int{8, 4}, Role: "output"})
	g.Ops = append(g.Ops,
		trace.Op{
			ID: 1, Name: "layers.0.attn.add", Kind: "add", Inputs: []trace.ValueID{0, 2},
			Outputs: []trace.ValueID{3}, Layer: new(int), Block: "attn",
		})
	norm := t.Steps[1].Resize.Passes[0].Hooks[0]
	t.Steps[1].Resize = trace.Resize{Order: "fixpoint", NS: trace.Measured(3000), Passes: []trace.Pass{
		{
			Index: 0, Dirty: []trace.ValueID{0},
			Hooks: []trace.Hook{
				norm,
				{Op: 1, Triggers: []trace.ValueID{0}, NS: trace.Measured(200), Glitch: true, Deferred: true},
			},
		},
		{Index: 1, Dirty: []trace.ValueID{2}, Hooks: []trace.Hook{{
			Op: 1, Triggers: []trace.ValueID{2}, NS: trace.Measured(400),
			Changed: []trace.Change{{Value: 3, From: []int{3, 4}, To: []int{1, 4}}},
		}}},
		{Index: 2, Dirty: []trace.ValueID{3}},
	}}
	return t
}

func TestResizePassByPass(t *testing.T) {
	golden.RequireEqual(t,
		printed(t, resized(inspect.NewIndex(residual()), 1), table.Selection{All: true}, 80))
}

func TestAStepThatChangesNothingSaysSo(t *testing.T) {
	tr := tracetest.Tiny()
	tr.Steps[1].Resize = trace.Resize{Order: "topological"}
	want := "nothing changed: no operator was planned"
	if got := inspect.NewIndex(tr).Resize(1).Line(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestWhyOfADispatchThatNeverChanged(t *testing.T) {
	tr := tracetest.Tiny()
	tr.Steps[0].Resize, tr.Steps[1].Resize = trace.Resize{}, trace.Resize{}
	x := inspect.NewIndex(tr)
	lines := x.Why(1, 0).Lines()
	if got, want := lines[0], "in force since the graph was built"; !strings.HasSuffix(got, want) {
		t.Errorf("%q, want %q at its end", got, want)
	}
	tr.DroppedSteps = 4
	lines = x.Why(1, 0).Lines()
	want := "in force since before the first step that was kept"
	if got := lines[0]; !strings.HasSuffix(got, want) {
		t.Errorf("%q, want %q at its end", got, want)
	}
	if x.Why(1, 0) == nil || inspect.NewIndex(timed(1, 0, 0, 1)).Why(0, 1) != nil {
		t.Error("a dispatch that did not run was explained")
	}
}

func TestReachesAreTheOperatorsDownstream(t *testing.T) {
	x := inspect.NewIndex(residual())
	if got := x.Reaches(0); len(got) != 2 || got[0] != 0 || got[1] != 1 {
		t.Errorf("x reaches %v, want both operators", got)
	}
	if got := x.Reaches(3); len(got) != 0 {
		t.Errorf("sum reaches %v, want nothing", got)
	}
}
