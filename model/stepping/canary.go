package stepping

import (
	"time"

	"gpuscope/engine"
	"gpuscope/engine/gpu"
	"gpuscope/ops/kind"
	"gpuscope/trace"
)

// ProbeEvery is the minimum time between two runs of the clock probe. A probe takes about 100 µs including
// its submit, so more frequent probes would slow the steps down.
const ProbeEvery = 25 * time.Millisecond

// UseClockProbe prepares a clock probe if the device is a GPU with timestamps. A software device gets no
// probe, because the clock of a CPU changes with everything that the machine does.
func (r *Device) UseClockProbe() error {
	if r.Dev.Info().Type == gpu.CPU || !r.Timed() {
		return nil
	}
	k, err := kind.Ceilings()
	if err != nil {
		return err
	}
	return r.Exec.UseCanary(k)
}

// HeedClockProbe runs the clock probe after a timed step if ProbeEvery has passed since the last probe. It
// returns the speed of the GPU clock as a fraction of its speed when the GPU is warm, or 0 if no probe ran.
// The bool is true if the last known speed is low. If the next step has already been submitted, the probe
// runs after that step, and a later call returns the speed. The times of steps never include the probe. If
// the probe fails, the error is ignored, because the next step fails with the same error.
func (r *Device) HeedClockProbe(timing engine.Timing) (speed float64, slow bool) {
	if timing == engine.TimingOff {
		return 0, false
	}
	if time.Since(r.Probed) < ProbeEvery {
		return 0, r.Slow
	}
	speed = r.ProbeClock()
	return speed, r.Slow
}

// ProbeClock runs the clock probe and returns the speed of the GPU clock as a fraction of its speed when the
// GPU is warm. It returns 0 if there is no probe or if the result is not yet available.
func (r *Device) ProbeClock() float64 {
	speed, err := r.Exec.Canary()
	if err == nil && speed == 0 {
		return 0
	}
	r.Probed = time.Now()
	r.Slow = err == nil && speed < 1-trace.ClockMoved
	return speed
}
