package widget

import (
	"fmt"
	"slices"
	"time"

	"gpuscope/internal/printable"
)

// metered is the number of times that the meter keeps: one for each of the latest messages and, separately,
// one for each of the latest frames.
const metered = 100

// Meter measures the performance of the screen: the time per message, the time per frame and the message
// rate.
type Meter struct {
	Shown         bool
	update, frame ring // update: time of each Update; frame: time of each Update and the View after it
	view          ring
	came          [metered]time.Time
	messages      int
	taken         time.Duration // total duration of the updates since the last frame
}

// ring keeps the latest durations.
type ring struct {
	took [metered]time.Duration
	n    int // number of durations ever added
}

func (r *ring) add(d time.Duration) {
	r.took[r.n%metered] = d
	r.n++
}

// said formats the median and the maximum of the kept durations.
func (r *ring) said() string {
	n := min(r.n, metered)
	if n == 0 {
		return "–"
	}
	sorted := slices.Sorted(slices.Values(r.took[:n]))
	return fmt.Sprintf("%s, worst %s", millis(sorted[n/2]), millis(sorted[n-1]))
}

func millis(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d)/1e6) }

// Updated is called after a message was handled. Drawn is called after a frame was drawn.
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

// rate returns the number of messages in the last second. If the last second had more messages than the meter
// keeps, rate returns the average rate of the kept messages.
func (m *Meter) rate() float64 {
	at, n, since := Now(), 0, time.Second
	for i := m.messages - 1; i >= max(0, m.messages-metered); i-- {
		ago := at.Sub(m.came[i%metered])
		if ago > time.Second {
			break
		}
		if n++; n == metered { // the last second may have had more messages than the meter keeps
			since = max(ago, time.Microsecond)
		}
	}
	return float64(n) / since.Seconds()
}

// Lines returns the measurements as lines of text. `running` describes the running jobs, and `how` tells the
// user how to hide the meter.
func (m *Meter) Lines(t *Theme, running, how string, w int) []string {
	said := []string{
		fmt.Sprintf("frame %s · view %s", m.frame.said(), m.view.said()),
		fmt.Sprintf("update %s · last %d messages", m.update.said(), min(m.messages, metered)),
		fmt.Sprintf("%.0f messages/s · %s running · %s", m.rate(), running, how),
	}
	for i, l := range said {
		said[i] = t.Put(Dim, " "+Cut(printable.Clean(l), w-2))
	}
	return said
}
