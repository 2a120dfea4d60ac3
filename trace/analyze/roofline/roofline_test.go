package roofline_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/roofline"
	"gpuscope/trace/tracetest"
)

func of(tr *trace.Trace) (*roofline.Roofline, error) {
	return roofline.Of(context.Background(), analyze.NewIndex(tr))
}

func point(t *testing.T, p *roofline.Phase, kernel string) *roofline.Point {
	t.Helper()
	for i := range p.Points {
		if p.Points[i].Kernel == kernel {
			return &p.Points[i]
		}
	}
	t.Fatalf("%s has no point of kernel %s", p.Phase, kernel)
	return nil
}

func TestPrefillAndDecodeHaveTheirOwnPoints(t *testing.T) {
	t.Parallel()
	tr := tracetest.Llama(2, 4)
	r, err := of(tr)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Phases) != 2 || r.Phases[0].Phase != trace.Prefill || r.Phases[1].Phase != trace.Decode {
		t.Fatalf("phases: %+v", r.Phases)
	}
	if r.FlopsPerS != 50e12 || r.Phases[1].BytesPerS != 4.24e12 {
		t.Errorf("ceilings: %g FLOP/s, %g B/s", r.FlopsPerS, r.Phases[1].BytesPerS)
	}
	if got, want := r.Ridge(&r.Phases[1]), 50/4.24; math.Abs(got-want) > 1e-9 {
		t.Errorf("ridge at %g, want %g", got, want)
	}
	// Per decode step, two layers have seven products each, and one is the output: no first dispatch.
	product := point(t, &r.Phases[1], "linear_q4gsw_coop4_bicol")
	if got, want := product.Dispatches, r.Phases[1].Steps*15; got != want {
		t.Errorf("%d products, want %d", got, want)
	}
	steel := point(t, &r.Phases[0], "linear_q4gsw_steel")
	a, _ := product.Intensity()
	b, _ := steel.Intensity()
	if a < 1 || a > 4 || b < 30 {
		t.Errorf("intensities: decode %g, prefill %g FLOP/byte", a, b)
	}
	if r.Roof(&r.Phases[1], a) != a*4.24e12 || r.Roof(&r.Phases[1], 1000) != 50e12 {
		t.Errorf("roofs: %g and %g", r.Roof(&r.Phases[1], a), r.Roof(&r.Phases[1], 1000))
	}
}

func TestRatesAreWorkOverIsolatedTimeWithoutTiming(t *testing.T) {
	t.Parallel()
	tr := tracetest.Llama(1, 2)
	r, err := of(tr)
	if err != nil {
		t.Fatal(err)
	}
	last := &tr.Steps[len(tr.Steps)-1]
	var bytes, flops, ns float64
	for i := range last.Dispatches {
		if p := &tr.Plans[last.Dispatches[i].Plan]; p.Kernel == "linear_q4gsw_coop4_bicol" {
			median, _ := analyze.MedianOf(&last.Dispatches[i])
			bytes, flops = bytes+float64(p.Bytes), flops+float64(p.FLOPs)
			ns += median - (4800 - 1696)
		}
	}
	got := point(t, &r.Phases[1], "linear_q4gsw_coop4_bicol")
	if math.Abs(got.BytesPerS/(bytes*1e9/ns)-1) > 1e-9 || math.Abs(got.FlopsPerS/(flops*1e9/ns)-1) > 1e-9 {
		t.Errorf("rates %g B/s and %g FLOP/s, want %g and %g", got.BytesPerS, got.FlopsPerS,
			bytes*1e9/ns, flops*1e9/ns)
	}
	if want := got.BytesPerS / 4.24e12; got.Bound != analyze.MemoryBound ||
		math.Abs(got.Share/want-1) > 1e-9 {
		t.Errorf("bound %v at %g, want memory at %g", got.Bound, got.Share, want)
	}
	if add := point(t, &r.Phases[1], "add"); !add.AtFloor || add.BytesPerS != 0 {
		t.Errorf("add is at the floor, so it has no rate: %+v", add)
	}
}

func TestTracesWithoutRatesAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		want   roofline.Reason
		change func(*trace.Trace)
	}{
		{roofline.Software, func(t *trace.Trace) { t.Device.AdapterType = trace.AdapterCPU }},
		{roofline.NoDevice, func(t *trace.Trace) { t.Device.Name = trace.NoDevice }},
		{roofline.NoCeilings, func(t *trace.Trace) { t.Device.Ceilings = nil }},
		{roofline.NoTimes, func(t *trace.Trace) { t.Steps = nil }},
	} {
		tr := tracetest.Llama(1, 3)
		c.change(tr)
		_, err := of(tr)
		var refused *roofline.Refusal
		if !errors.As(err, &refused) || refused.Why != c.want {
			t.Errorf("error %v, want reason %d", err, c.want)
		}
	}
}

func TestRatesOfAnyTraceAreFinite(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		line, err := of(tracetest.Random(r))
		var refused *roofline.Refusal
		if errors.As(err, &refused) {
			return
		}
		if err != nil {
			r.Fatal(err)
		}
		for i := range line.Phases {
			for _, p := range line.Phases[i].Points {
				for _, v := range []float64{p.NS, p.BytesPerS, p.FlopsPerS, p.Share} {
					if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
						r.Fatalf("point %+v", p)
					}
				}
			}
		}
	})
}
