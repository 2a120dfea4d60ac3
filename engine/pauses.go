package engine

import (
	"runtime/debug"
	"time"
)

// pauses tells for how long Go's garbage collector has stopped the program. What it reads into is used again,
// so that looking allocates nothing.
type pauses struct{ stats debug.GCStats }

// since is how many pauses have ended since then, and their sum in ns. The runtime remembers the last 256.
func (p *pauses) since(t time.Time) (n int, ns int64) {
	debug.ReadGCStats(&p.stats)
	wall := t.Round(0) // the runtime's times have no monotonic part
	for n < len(p.stats.PauseEnd) && p.stats.PauseEnd[n].After(wall) {
		ns += p.stats.Pause[n].Nanoseconds()
		n++
	}
	return n, ns
}
