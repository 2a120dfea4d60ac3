package model

import (
	"time"

	"gpuscope/engine"
	"gpuscope/engine/gpu"
	"gpuscope/ops"
)

// canaryEvery is how much time lies at least between two runs of the canary: it takes some 100 us with its
// submit, which must not slow a run down.
const canaryEvery = 25 * time.Millisecond

// useCanary gets a canary ready on a GPU. The clock of a processor that stands in for one moves with all that
// the machine does.
func (r *runner) useCanary() error {
	if r.dev.Info().Type == gpu.CPU || !r.timed() {
		return nil
	}
	k, err := ops.Ceilings()
	if err != nil {
		return err
	}
	return r.exec.UseCanary(k)
}

// heed runs the canary behind a step that was timed, where the last run was some time ago, and tells its
// speed; 0 where it did not run. Nothing of the step has it in its times. What ails it ails the next step,
// which says so.
func (r *runner) heed(timing engine.Timing) float64 {
	if timing == engine.TimingOff || time.Since(r.sang) < canaryEvery {
		return 0
	}
	speed, err := r.exec.Canary()
	r.sang = time.Now()
	if err != nil {
		return 0
	}
	return speed
}
