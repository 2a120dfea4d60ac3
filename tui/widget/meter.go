package widget

import (
	"fmt"
	"slices"
	"time"

	"gpuscope/internal/printable"
)

// metered is how many of the last messages and frames are measured.
const metered = 100

// Meter measures the screen itself: how long a message takes, how long a frame, and how many come.
type Meter struct {
	Shown         bool
	update, frame ring // Update; and with it the View that follows
	view          ring
	came          [metered]time.Time
	messages      int
	taken         time.Duration // by the updates since the last frame
}

// ring has the last durations.
type ring struct {
	took [metered]time.Duration
	n    int // ever
}

func (r *ring) add(d time.Duration) {
	r.took[r.n%metered] = d
	r.n++
}

// said is the median and the worst.
func (r *ring) said() string {
	n := min(r.n, metered)
	if n == 0 {
		return "–"
	}
	sorted := slices.Sorted(slices.Values(r.took[:n]))
	return fmt.Sprintf("%s, worst %s", millis(sorted[n/2]), millis(sorted[n-1]))
}

func millis(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d)/1e6) }

// Updated takes in that a message was handled, Drawn that a frame was.
func (m *Meter) Updated(begun time.Time) {
	m.came[m.messages%metered] = begun
	m.messages++
	d := Now().Sub(begun)
	m.update.add(d)
	m.taken += d
}

func (m *Meter) Drawn(begun time.Time) {
	d := Now().Sub(begun)
	m.view.add(d)
	m.frame.add(m.taken + d)
	m.taken = 0
}

// rate is how many messages came in a second: those of the last second, or of as long as the last take.
func (m *Meter) rate() float64 {
	at, n, since := Now(), 0, time.Second
	for i := m.messages - 1; i >= max(0, m.messages-metered); i-- {
		ago := at.Sub(m.came[i%metered])
		if ago > time.Second {
			break
		}
		if n++; n == metered { // more came than are kept
			since = max(ago, time.Microsecond)
		}
	}
	return float64(n) / since.Seconds()
}

// Lines are what it measured; running says what else runs, and how says how to hide this.
func (m *Meter) Lines(t *Theme, running, how string, w int) []string {
	said := []string{
		fmt.Sprintf("frame %s · view %s", m.frame.said(), m.view.said()),
		fmt.Sprintf("update %s · of the last %d", m.update.said(), min(m.messages, metered)),
		fmt.Sprintf("%.0f messages/s · %s running · %s", m.rate(), running, how),
	}
	for i, l := range said {
		said[i] = t.Put(Dim, " "+Cut(printable.Clean(l), w-2))
	}
	return said
}
