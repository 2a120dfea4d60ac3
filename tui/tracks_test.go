package tui

import (
	"math"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/tracks"
	"gpuscope/trace/tracetest"
	"gpuscope/tui/view/step"
	"gpuscope/tui/widget"
)

// A recording can contain any times. Its tracks must still fit the screen.
func TestTracksOfAnyTimesFit(t *testing.T) {
	t.Parallel()
	dark, _ := widget.NewTheme("dark", "never", nil, nil)
	times := []int64{math.MinInt64, -1, 0, 1, 1e6, 1 << 62, math.MaxInt64}
	for _, start := range some(times) {
		for _, a := range times {
			for _, b := range times {
				run := tracetest.Llama(1, 2)
				s := &run.Steps[1]
				c := &s.CPU
				c.StartNS, c.SubmittedNS = trace.Measured(start), trace.Measured(a)
				c.ResizeNS, c.WaitNS, c.TotalNS = trace.Measured(a), trace.Measured(b),
					trace.Measured(a)
				s.GPU.StartNS, s.GPU.SpanNS = trace.Measured(b), trace.Measured(a)
				s.Dispatches[0].StartNS, s.Dispatches[0].GPUNS = trace.Measured(a),
					trace.Measured(b)
				x := analyze.NewIndex(run)
				r := tracks.Of(x, 1)
				for _, w := range []int{8, 60, 104} {
					lines := step.Tracks(dark, x, 1, r, nil, w, true)
					for i := range r.GPU {
						lines = append(lines, step.Tracks(dark, x, 1, r,
							&r.GPU[i], w, true)...)
					}
					for _, l := range lines {
						if n := ansi.StringWidth(l); n > max(w,
							len(" GPU - not measured")) {
							t.Errorf("%d, %d and %d: %d columns of %d: %q",
								start, a, b, n, w, l)
						}
					}
				}
			}
		}
	}
}

// If a step was run again to measure its costs, the time before its first GPU timestamp is unknown. The time
// of the CPU is still shown. The tracks of a repeated step say which run they show.
func TestStepNamesPartsAndTheirRun(t *testing.T) {
	t.Parallel()
	run := tracetest.Llama(1, 2)
	s := &run.Steps[1]
	s.Timing, s.Cold, run.Observer = trace.TimingDispatch, false, nil
	s.CPU.ResizeNS, s.CPU.UploadNS, s.CPU.SampleNS = trace.Time{}, trace.Time{}, trace.Time{}
	s.Whole = &trace.Whole{
		NS: 8_770_000, WallNS: trace.Measured(9_530_000), N: 31,
		OffNS: trace.Measured(1000), WallOff: trace.Measured(1000),
	}
	facts := func() *step.Facts {
		x := analyze.NewIndex(run)
		return &step.Facts{Sum: x.Summary(1), Tracks: tracks.Of(x, 1)}
	}
	const sum = "This token took 9.53 ms: CPU 0.76, GPU 8.77."
	if got := facts().Took().String(); !strings.HasPrefix(got, sum) {
		t.Errorf("%q", got)
	}
	s.Whole = nil
	for i := range s.Dispatches {
		s.Dispatches[i].Samples = []int64{1, 2, 3}
	}
	f := facts()
	for _, line := range step.GPUTexts(f.Tracks, "") {
		if !strings.Contains(line, "first of 4 runs") {
			t.Errorf("%q does not say which run it shows", line)
		}
	}
}

// The tracks show the timed step, below a line about the untimed step. Each says which of the two it shows,
// with its time. The overhead of timing was measured separately, and other views show it as one number.
func TestTracksNameTheTimedStep(t *testing.T) {
	t.Parallel()
	for _, size := range some([][2]int{{80, 24}, {120, 40}, {200, 60}}) {
		d := drive(t, size[0], size[1], llama, nil, Options{}).press("1")
		d.sees("This token took 7.70 ms", "8.70 ms",
			"timed: resize 41").misses("%)")
		if !strings.Contains(d.line("on the GPU"), " timed: ") {
			t.Errorf("%v: the GPU's figures are %q", size, d.line("on the GPU"))
		}
	}
	untimed := tracetest.Llama(1, 4)
	for i := range untimed.Steps {
		untimed.Steps[i].Timing = trace.TimingStep
	}
	drive(t, 120, 40, untimed, nil, Options{}).press("1").misses("timed:").reads("list")
}
