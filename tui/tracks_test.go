package tui

import (
	"math"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"gpuscope/trace"
)

// What a recording says of times may be anything: a track is as wide as the screen all the same.
func TestTracksOfAnyTimesFit(t *testing.T) {
	t.Parallel()
	times := []int64{0, 1, 1e6, 1 << 40, 1 << 62, math.MaxInt64}
	for _, w := range []int{0, 1, 6, 104} {
		for _, whole := range times {
			for _, a := range times {
				for _, b := range times {
					got := bar([]share{
						{"resize", trace.Measured(a), ""},
						{"wait", trace.Measured(b), ""},
						{"gaps", trace.Measured(b), ""},
						{"idle", trace.Measured(a), ""},
					}, trace.Measured(whole), w)
					if n := ansi.StringWidth(got); n > max(w+1, len("– not measured")) {
						t.Errorf("%d and %d of %d in %d columns: %d columns", a, b, whole, w, n)
					}
				}
			}
		}
	}
}
