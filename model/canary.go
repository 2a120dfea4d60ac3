package model

import (
	"time"

	"gpuscope/engine"
	"gpuscope/engine/gpu"
	"gpuscope/ops"
	"gpuscope/trace"
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

// heed runs the canary after a step that was timed, where the last run was some time ago, and tells its
// speed, 0 where it did not run, and whether the GPU's clock is slow by what is known last. Where the next
// step is on its way it runs after that, and is told then. Nothing of the step has it in its times. What
// ails it ails the next step, which says so.
func (r *runner) heed(timing engine.Timing) (speed float64, slow bool) {
	if timing == engine.TimingOff {
		return 0, false
	}
	if time.Since(r.sang) < canaryEvery {
		return 0, r.slow
	}
	speed = r.sing()
	return speed, r.slow
}

// sing runs the canary and tells its speed, 0 where there is none, or none is told yet.
func (r *runner) sing() float64 {
	speed, err := r.exec.Canary()
	if err == nil && speed == 0 {
		return 0
	}
	r.sang = time.Now()
	r.slow = err == nil && speed < 1-trace.ClockMoved
	return speed
}
