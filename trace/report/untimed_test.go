package report

import (
	"testing"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
)

// A step's GPU time and wall time are medians of different runs. On an unsteady device the GPU time can
// exceed the wall time. Then the split is unknown, and no part of it may be negative.
func TestGPUTimeOverWallTimeIsUnknown(t *testing.T) {
	u := analyze.Untimed{
		Wall: trace.Measured(11e6), GPU: trace.Measured(20e6),
		Before: trace.Measured(1e6),
	}
	u.Rest()
	if p := gpuPart(&u); p.Text != "" || analyze.Measured(u.Before) {
		t.Errorf("%q, %+v", p.Text, u)
	}
}

// The GPU time from the cost rounds must not be subtracted from the wall time that the observer measured
// before them. If the GPU gets faster from round to round, the difference would grow.
func TestASplitIsOfOneMeasurement(t *testing.T) {
	index := 7
	of := func(span, wall trace.Time) analyze.Untimed {
		return analyze.NewIndex(&trace.Trace{
			Observer: &trace.Observer{
				Step: &index, UntimedNS: trace.Measured(48e6),
				SpanNS: span, N: 8, UntimedOff: trace.Measured(1000),
				SpanOff: trace.Measured(1000),
			},
			Steps: []trace.Step{{
				Index: index, Phase: trace.Decode, Timing: trace.TimingDispatch,
				Whole: &trace.Whole{
					NS: 38e6, N: 40, WallNS: wall,
					OffNS: trace.Measured(1000), WallOff: trace.Measured(1000),
				},
			}},
		}).Untimed(0)
	}
	for _, c := range []struct {
		name       string
		span, wall trace.Time // GPU span of the observer, wall time of the rounds
		want, from string
	}{
		{
			"the observer has both", trace.Measured(46e6), trace.Measured(39e6),
			"GPU 46.0 ms, idle 2.00 ms", "s7 ×8",
		},
		{
			"the observer's GPU time exceeds its wall time", trace.Measured(49e6),
			trace.Measured(39e6),
			"GPU 38.0 ms, idle 1.00 ms", "s7 ×40",
		},
		{"the rounds have no wall time", trace.Measured(49e6), trace.Time{}, "", "s7 ×8"},
	} {
		if u := of(c.span, c.wall); gpuPart(&u).Text != c.want || u.From != c.from {
			t.Errorf("%s: %q (%s), want %q (%s)", c.name, gpuPart(&u).Text, u.From,
				c.want, c.from)
		}
	}
}

// A split uses only steps that have both times. Wall times of untimed steps and GPU spans of timed steps are
// medians of different steps, so their difference means nothing.
func TestSplitUsesTheSameSteps(t *testing.T) {
	x := analyze.NewIndex(&trace.Trace{})
	selection := analyze.Selection{Name: "decode"}
	for i, wall := range []int64{4e6, 5e6, 6e6} {
		s := trace.Step{Index: i, Phase: trace.Decode, Timing: trace.TimingStep}
		s.CPU.TotalNS, s.GPU = trace.Measured(wall), &trace.GPU{SpanNS: trace.Measured(wall - 1e6)}
		x.Trace.Steps, selection.Steps = append(x.Trace.Steps, s), append(selection.Steps, i)
	}
	said := func() string { u := x.UntimedOf(selection); return gpuPart(&u).Text }
	if got, want := said(), "GPU 4.00 ms, idle 1.00 ms"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for i := range x.Trace.Steps {
		s := &x.Trace.Steps[i]
		s.CPU.StartNS, s.CPU.SubmittedNS = trace.Measured(0), trace.Measured(1e5)
		s.GPU.StartNS = trace.Measured(2e5)
	}
	if u := x.UntimedOf(selection); u.Before != trace.Measured(2e5) {
		t.Errorf("%+v", u)
	}
	x.Trace.Steps[0].CPU.SubmittedNS = trace.Time{}
	if u := x.UntimedOf(selection); analyze.Measured(u.Before) || !analyze.Measured(u.GPU) {
		t.Errorf("Before comes from fewer steps than the rest: %+v", u)
	}
	x.Trace.Steps[2].Timing, x.Trace.Steps[2].GPU = "off", nil
	if got, want := said(), ""; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// The time that the GPU waits and the overhead of timing are differences. They are shown only if they are
// larger than their error.
func TestDifferencesWithinTheirErrorAreHidden(t *testing.T) {
	index := 7
	for _, c := range []struct {
		off     int64 // error of the times, in ns
		divided bool
		cost    string
	}{{1e6, true, "+10%"}, {5e6, false, ""}, {-1, false, ""}} {
		o := &trace.Observer{
			Step: &index, UntimedNS: trace.Measured(40e6), TimedNS: trace.Measured(44e6),
			SpanNS: trace.Measured(38e6), N: 8,
		}
		if c.off >= 0 {
			o.UntimedOff, o.SpanOff = trace.Measured(c.off), trace.Measured(c.off)
		}
		x := analyze.NewIndex(&trace.Trace{Observer: o, Steps: []trace.Step{{
			Index: index, Phase: trace.Decode, Timing: trace.TimingDispatch,
		}}})
		u := x.Untimed(0)
		if Divided(&u) != c.divided || u.Cost != c.cost {
			t.Errorf("error of %d ns: divided %t, overhead %q, want %t and %q", c.off,
				Divided(&u), u.Cost,
				c.divided, c.cost)
		}
	}
}
