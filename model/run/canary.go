package run

import (
	"time"

	"gpuscope/engine"
	"gpuscope/engine/gpu"
	"gpuscope/ops"
	"gpuscope/trace"
)

// ProbeEvery is how much time lies at least between two runs of the canary: it takes some 100 us with its
// submit, which must not slow a run down.
const ProbeEvery = 25 * time.Millisecond

// UseClockProbe gets a canary ready on a GPU. The clock of a processor that stands in for one moves with all
// that the machine does.
func (r *Runner) UseClockProbe() error {
	if r.Dev.Info().Type == gpu.CPU || !r.Timed() {
		return nil
	}
	k, err := ops.Ceilings()
	if err != nil {
		return err
	}
	return r.Exec.UseCanary(k)
}

// HeedClockProbe runs the canary after a step that was timed, where the last run was some time ago, and tells
// its speed, 0 where it did not run, and whether the GPU's clock is slow by what is known last. Where the
// next step is on its way it runs after that, and is told then. Nothing of the step has it in its times. What
// ails it ails the next step, which says so.
func (r *Runner) HeedClockProbe(timing engine.Timing) (speed float64, slow bool) {
	if timing == engine.TimingOff {
		return 0, false
	}
	if time.Since(r.Probed) < ProbeEvery {
		return 0, r.Slow
	}
	speed = r.ProbeClock()
	return speed, r.Slow
}

// ProbeClock runs the canary and tells its speed, 0 where there is none, or none is told yet.
func (r *Runner) ProbeClock() float64 {
	speed, err := r.Exec.Canary()
	if err == nil && speed == 0 {
		return 0
	}
	r.Probed = time.Now()
	r.Slow = err == nil && speed < 1-trace.ClockMoved
	return speed
}
