package widget

import (
	"testing"
	"time"
)

func TestTheMeterCountsWhatCame(t *testing.T) {
	clock := Now
	at := clock()
	Now = func() time.Time { return at }
	defer func() { Now = clock }()
	var m Meter
	for i := range 250 {
		begun := at
		at = at.Add(time.Millisecond)
		if i == 200 {
			at = at.Add(9 * time.Millisecond)
		}
		m.Updated(begun)
		begun = at
		at = at.Add(3 * time.Millisecond)
		m.Drawn(begun)
	}
	if got := m.update.said(); got != "1.00 ms, worst 10.00 ms" {
		t.Errorf("update %s", got)
	}
	if got := m.frame.said(); got != "4.00 ms, worst 13.00 ms" {
		t.Errorf("frame %s", got)
	}
	if r := m.rate(); r < 240 || r > 260 {
		t.Errorf("%.1f messages a second, want about 250", r)
	}
	if at = at.Add(time.Minute); m.rate() != 0 {
		t.Errorf("%.1f messages a second after a minute of none", m.rate())
	}
}
