package measure

import (
	"context"
	"fmt"
	"time"

	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/trace"
)

// Probe runs a fixed kernel whose duration shows the frequency of the GPU clock. The kernel is one workgroup
// that only does arithmetic, so its duration does not depend on memory traffic or on the work of a step.
type Probe struct {
	*Meter
	kernel Metered
	sent   gpu.Recording // submitted run whose time was not read yet, or nil
	// reference is the duration of the kernel on the warm device in ns.
	reference float64
}

const (
	// A run with probeRounds takes about 30 us on a GPU. A warm-up run with warmingRounds in all workgroups
	// takes half a millisecond or more.
	probeRounds   = 256
	warmingRounds = 16 * probeRounds
	// The reference is final after probeSteady consecutive runs that agree within the fraction probeNoise. If
	// the runs do not agree within warmFor, the last time is used.
	probeSteady = 5
	probeNoise  = 0.005
)

// Release frees the GPU objects of the probe.
func (c *Probe) Release() { c.Free() }

// settle runs the kernel until several consecutive runs take the same time, which becomes the reference. It
// warms up the GPU first, because a cold GPU can be steady too: a GPU that had received only buffer writes
// for some seconds ran steadily at a fifth of its full clock.
func (c *Probe) settle() error {
	if err := c.setFMA(warmingRounds); err != nil {
		return err
	}
	if err := c.warm(context.Background(), c.kernel); err != nil {
		return err
	}
	if err := c.setFMA(probeRounds); err != nil {
		return err
	}
	steady := 0
	for start := time.Now(); steady < probeSteady && time.Since(start) < warmFor; {
		ns, err := c.warmed(c.kernel, 1)
		if err != nil {
			return err
		}
		if steady++; ns < c.reference*(1-probeNoise) || ns > c.reference*(1+probeNoise) {
			steady, c.reference = 1, ns
		}
	}
	return nil
}

// Send submits a run of the probe without waiting for it. The run executes the kernel twice, because the
// first execution loads the code.
func (c *Probe) Send() (err error) {
	c.sent, err = c.Meter.send(c.kernel, 1, 1, 2)
	return err
}

// heard waits for the submitted run and returns its duration in ns.
func (c *Probe) heard() (float64, error) {
	sent := c.sent
	c.sent = nil
	times, err := c.times(sent, 2)
	if err != nil {
		return 0, err
	}
	return times[1], nil
}

// NewProbe creates a probe and measures its reference. It warms up the GPU, which takes a fraction of a
// second.
func NewProbe(dev gpu.Device, clock *Clock, fma *graph.Kernel) (*Probe, error) {
	c := &Probe{}
	var err error
	if c.Meter, err = newMeter(dev, clock, 4); err != nil {
		return nil, fmt.Errorf("clock probe: %w", err)
	}
	out, err := dev.NewBuffer("clock probe", 4, 0)
	if err == nil {
		c.owned = append(c.owned, out)
		c.kernel, err = c.bind(fma, out)
	}
	if err == nil {
		err = c.settle()
	}
	if err != nil {
		c.Free()
		return nil, fmt.Errorf("clock probe: %w", err)
	}
	return c, nil
}

// Submitted reports whether there is a submitted run whose speed has not been read yet.
func (c *Probe) Submitted() bool { return c.sent != nil }

// Speed waits for the submitted run and returns its speed relative to the warm device, where 1 means equally
// fast. A run that is clearly faster than the reference shows that the device was not warm before, so its
// duration becomes the new reference.
func (c *Probe) Speed() (float64, error) {
	ns, err := c.heard()
	if err != nil || ns <= 0 {
		return 0, err
	}
	if ns*(1+trace.ClockMoved) < c.reference {
		c.reference = ns
	}
	return c.reference / ns, nil
}

// Forget waits for a submitted run and ignores its result. It accepts a nil Probe.
func (c *Probe) Forget() {
	if c != nil && c.sent != nil {
		_, _ = c.heard() // an error of the device will also fail the next step, which reports it
	}
}

// ReferenceNS returns the probe's duration on the warm device. The time is unmeasured if the Probe is nil.
func (c *Probe) ReferenceNS() trace.Time {
	if c == nil || c.reference <= 0 {
		return trace.Time{}
	}
	return trace.Measured(int64(c.reference))
}
