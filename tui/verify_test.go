package tui

import "testing"

func TestDispatchesAreHeldToTheirReferences(t *testing.T) {
	t.Parallel()
	d := live(t, 200, 50).press("2", "A").sees("[PAUSED]", "SNR dB", "120.0", "90.0")
	d.press("down").reads("detail")
	gaps := func(step int) (n int) {
		for _, s := range d.app.mirror.Trace.Steps[step].Dispatches {
			if s.Error != nil {
				n++
			}
		}
		return n
	}
	all := len(d.app.mirror.Trace.Steps[3].Dispatches)
	if gaps(3) != all || gaps(2) > 0 {
		t.Errorf("%d gaps of %d dispatches, %d in the step before", gaps(3), all, gaps(2))
	}
	d.press(",", "a")
	if n := gaps(2); n == 0 || n == all {
		t.Errorf("of one row %d dispatches of %d were held to a reference", n, all)
	}
}
