package engine

import (
	"runtime/debug"
	"time"
)

// pauses measures how long Go's garbage collector has stopped the program. The stats are kept between
// calls, so that reading them does not allocate.
type pauses struct{ stats debug.GCStats }

// since returns how many pauses of the garbage collector ended after t, and their total duration in ns. Only
// the last 256 pauses are known.
func (p *pauses) since(t time.Time) (n int, ns int64) {
	debug.ReadGCStats(&p.stats)
	wall := t.Round(0) // pause times of the runtime have no monotonic reading
	for n < len(p.stats.PauseEnd) && p.stats.PauseEnd[n].After(wall) {
		ns += p.stats.Pause[n].Nanoseconds()
		n++
	}
	return n, ns
}
