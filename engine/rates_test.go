package engine

import (
	"context"
	"testing"
	"time"

	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/fake"
	"gpuscope/engine/graph"
	"gpuscope/engine/graph/graphtest"
)

// Measured on one GPU: the decode step of a 1B model and its prefill of 512 tokens.
const (
	decodeBytes, decodeFLOPs, decodeNS    = 700e6, 2.5e9, 1.25e6
	prefillBytes, prefillFLOPs, prefillNS = 1.5e9, 1.2e12, 36e6
)

func TestPrefillForecastIgnoresEarlierSteps(t *testing.T) {
	decode := func(r *rates) { r.learn(decodeBytes, decodeFLOPs, decodeNS) }
	prefill := func(r *rates) { r.learn(prefillBytes, prefillFLOPs, prefillNS) }
	slow := func(r *rates) { r.learn(decodeBytes, decodeFLOPs, 50*decodeNS) }
	for name, steps := range map[string][]func(*rates){
		"a prefill":             {prefill},
		"a prefill and decodes": {prefill, decode, decode, decode},
		"alternating":           {decode, prefill, decode, prefill, decode},
		"a slow decode":         {prefill, decode, slow, decode},
		"only a decode, so that the prefill is a guess": {decode},
	} {
		r := newRates(gpu.Discrete)
		for _, step := range steps {
			step(&r)
		}
		for _, kind := range []struct {
			name         string
			bytes, flops int64
			ns           float64
		}{
			{"prefill", prefillBytes, prefillFLOPs, prefillNS},
			{"decode", decodeBytes, decodeFLOPs, decodeNS},
		} {
			off := r.expect(kind.bytes, kind.flops) / kind.ns
			if off < 0.4 || off > 2.5 {
				t.Errorf("%s: the forecast of a %s is %.2f times the real time", name, kind.name, off)
			}
		}
	}
}

func TestNoForecastBeforeTheFirstRun(t *testing.T) {
	if r := newRates(gpu.Discrete); r.expect(1e12, 1e12) != 0 {
		t.Errorf("a GPU: %v ns", r.expect(1e12, 1e12))
	}
	r := newRates(gpu.Discrete)
	r.learn(0, 0, 1e6) // a step that only computes SymInts
	if r.expect(1, 1) != 0 {
		t.Errorf("after a step without work the forecast is %v ns", r.expect(1, 1))
	}
}

// A step is split if it takes long at the rates measured for bytes and FLOPs. A step that only seems long is
// not split.
func TestStepsAreSplitByBothRates(t *testing.T) {
	dev := fake.New(fake.Options{NoLog: true, Info: gpu.AdapterInfo{Name: "fake", Type: gpu.Discrete}})
	b := graph.NewBuilder(dev.Info().Limits)
	in := graphtest.RowsInput(b, "x")
	y := in
	for range 8 {
		from, to := y, b.Tensor("y", graph.U32)
		b.Add("y", &graphtest.FuncOp{
			Declares: graph.Spec{
				Kind: "work", Inputs: []graph.ValueID{from}, Outputs: []graph.ValueID{to},
				Slots: []graph.Slot{{Uses: []graph.Use{graphtest.On(graphtest.UnaryKernel, from, to)}}},
			},
			Bounds: func(r *graph.Ranges) []graph.Corner { return r.Ends(from) },
			Plans: func(p *graph.Planner) error {
				n := p.Dim(from, 0)
				p.SetDims(to, p.Dims(from)...)
				l := p.Dispatch(0, graphtest.Threads(p, p.Numel(from), 64))
				l.Params.U32("p0", p.Numel(from))
				l.Bytes, l.FLOPs = 1e6, int64(n)*1e6 // of the weights, and of the arithmetic with them
				return nil
			},
		})
		y = to
	}
	x, err := Load(dev, graphtest.Finish(t, b, y), graph.LiveOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Release()
	var took time.Duration // of a submit
	dev.Fault = func(c fake.Call) error {
		if c.Kind == fake.Wait {
			time.Sleep(took)
		}
		return nil
	}
	step := func(n int, ns time.Duration) (submits int) {
		t.Helper()
		took = ns
		inputs := []graph.InputData{
			{Value: in, Dims: []int{n, graphtest.Width}, Data: graphtest.BytesOf(graphtest.Pattern(n, 0))},
		}
		if err := x.Step(context.Background(), &graph.StepInput{Inputs: inputs}, TimingOff); err != nil {
			t.Fatal(err)
		}
		return x.last.submits
	}
	step(512, 3*time.Millisecond)
	step(1, 2*time.Millisecond)
	if n := step(512, 3*time.Millisecond); n != 1 {
		t.Errorf("a step of 3 ms was split into %d after a step of 2 ms with 1/512 of the FLOPs", n)
	}
	step(512, 500*time.Millisecond) // another program uses the GPU
	step(1, 2*time.Millisecond)
	if n := step(512, time.Millisecond); n < 4 {
		t.Errorf("a step that took 500 ms is split into %d", n)
	}
}
