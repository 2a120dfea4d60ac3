package inspect

import (
	"testing"

	"gpuscope/trace"
)

// On a device that is not steady a step's GPU time, of some runs, may be over its wall time, of others: then
// it is not known, and nothing is below 0.
func TestAGPUTimeOverTheWallTimeIsNotKnown(t *testing.T) {
	u := Untimed{Wall: trace.Measured(11e6), GPU: trace.Measured(20e6), Before: trace.Measured(1e6)}
	u.rest()
	if p := u.part(); p.Text != "step 11.0 ms" || measured(u.Before) {
		t.Errorf("%q, %+v", p.Text, u)
	}
}
