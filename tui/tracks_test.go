package tui

import (
	"math"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"gpuscope/trace"
	"gpuscope/trace/inspect"
	"gpuscope/trace/tracetest"
)

// What a recording says of times may be anything: a track is as wide as the screen all the same.
func TestTracksOfAnyTimesFit(t *testing.T) {
	t.Parallel()
	dark, _ := newTheme("dark", "never", nil, nil)
	times := []int64{math.MinInt64, -1, 0, 1, 1e6, 1 << 62, math.MaxInt64}
	for _, start := range times {
		for _, a := range times {
			for _, b := range times {
				run := tracetest.Llama(1, 2)
				s := &run.Steps[1]
				c := &s.CPU
				c.StartNS, c.SubmittedNS = trace.Measured(start), trace.Measured(a)
				c.ResizeNS, c.WaitNS, c.TotalNS = trace.Measured(a), trace.Measured(b), trace.Measured(a)
				s.GPU.StartNS, s.GPU.SpanNS = trace.Measured(b), trace.Measured(a)
				s.Dispatches[0].StartNS, s.Dispatches[0].GPUNS = trace.Measured(a), trace.Measured(b)
				x := inspect.NewIndex(run)
				r := x.Tracks(1)
				for _, w := range []int{8, 60, 104} {
					lines := tracks(dark, x, 1, r, nil, w, true)
					for i := range r.GPU {
						lines = append(lines, tracks(dark, x, 1, r, &r.GPU[i], w, true)...)
					}
					for _, l := range lines {
						if n := ansi.StringWidth(l); n > max(w, len(" GPU - not measured")) {
							t.Errorf("%d, %d and %d: %d columns of %d: %q", start, a, b, n, w, l)
						}
					}
				}
			}
		}
	}
}
