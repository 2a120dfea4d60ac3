package report

import (
	"testing"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
)

// On a device that is not steady a step's GPU time, of some runs, may be over its wall time, of others: then
// it is not known, and nothing is below 0.
func TestGPUTimeOverWallTimeIsUnknown(t *testing.T) {
	u := analyze.Untimed{Wall: trace.Measured(11e6), GPU: trace.Measured(20e6), Before: trace.Measured(1e6)}
	u.Rest()
	if p := untimedPart(&u); p.Text != "step 11.0 ms" || analyze.Measured(u.Before) {
		t.Errorf("%q, %+v", p.Text, u)
	}
}

// What the GPU takes in rounds of costs is no part of the wall time that an observer measured before them:
// their difference would grow as the GPU gets faster from round to round.
func TestASplitIsOfOneMeasurement(t *testing.T) {
	index := 7
	of := func(span, wall trace.Time) analyze.Untimed {
		return analyze.NewIndex(&trace.Trace{
			Observer: &trace.Observer{Step: &index, UntimedNS: trace.Measured(48e6), SpanNS: span, N: 8},
			Steps: []trace.Step{{
				Index: index, Phase: trace.Decode, Timing: trace.TimingDispatch,
				Whole: &trace.Whole{NS: 38e6, N: 40, WallNS: wall},
			}},
		}).Untimed(0)
	}
	for _, c := range []struct {
		name       string
		span, wall trace.Time // of the observer's GPU, and of the rounds
		want, from string
	}{
		{
			"the observer has both", trace.Measured(46e6), trace.Measured(39e6),
			"48.0 ms = 2.00 CPU + 46.0 GPU", "s7 ×8",
		},
		{
			"its GPU took longer", trace.Measured(49e6), trace.Measured(39e6),
			"39.0 ms = 1.00 CPU + 38.0 GPU", "s7 ×40",
		},
		{"no wall time of rounds", trace.Measured(49e6), trace.Time{}, "48.0 ms", "s7 ×8"},
	} {
		if u := of(c.span, c.wall); untimedPart(&u).Text != "step "+c.want || u.From != c.from {
			t.Errorf("%s: %q (%s), want %q (%s)", c.name, untimedPart(&u).Text, u.From, c.want, c.from)
		}
	}
}

// Walls of steps at off and spans of others at step are medians of different steps.
func TestSplitUsesTheSameSteps(t *testing.T) {
	x := analyze.NewIndex(&trace.Trace{})
	selection := analyze.Selection{Name: "decode"}
	for i, wall := range []int64{4e6, 5e6, 6e6} {
		s := trace.Step{Index: i, Phase: trace.Decode, Timing: trace.TimingStep}
		s.CPU.TotalNS, s.GPU = trace.Measured(wall), &trace.GPU{SpanNS: trace.Measured(wall - 1e6)}
		x.Trace.Steps, selection.Steps = append(x.Trace.Steps, s), append(selection.Steps, i)
	}
	said := func() string { u := x.UntimedOf(selection); return untimedPart(&u).Text }
	if got, want := said(), "step 5.00 ms = 1.00 CPU + 4.00 GPU"; got != want {
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
		t.Errorf("before the GPU of fewer steps than the rest: %+v", u)
	}
	x.Trace.Steps[2].Timing, x.Trace.Steps[2].GPU = "off", nil
	if got, want := said(), "step 5.00 ms"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
