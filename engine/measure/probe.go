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
	sent   gpu.Recording // submitted run that was not waited for yet, or nil
	// reference is the duration of the kernel in ns, on the warm device.
	reference float64
}

const (
	// A run of probeRounds rounds takes about 30 us on a GPU. A warm-up run has warmingRounds rounds and many
	// workgroups, and takes half a millisecond or more.
	probeRounds   = 256
	warmingRounds = 16 * probeRounds
	// The reference is found when probeSteady consecutive runs agree within the fraction probeNoise. If this
	// does not happen within warmFor, settle stops. The reference is then the time of the last run that
	// differed from the previous reference by more than probeNoise.
	probeSteady = 5
	probeNoise  = 0.005
)

// Release frees the GPU objects of the probe.
func (c *Probe) Release() { c.Free() }

// settle finds the reference: it runs the kernel until several consecutive runs take the same time. Before
// that, settle warms up the GPU, because runs on a cold GPU can agree too. For example, a GPU that had
// received only buffer writes for some seconds ran steadily at a fifth of its full clock.
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

// heard waits for the submitted run. It returns the duration of the second execution of the kernel, in ns.
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

// Speed waits for the submitted run and returns the speed of the device relative to the warm device: 1 means
// equally fast. If the run is clearly faster than the reference, the device was not warm when the reference
// was measured. The run then becomes the new reference.
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
		_, _ = c.heard() // if the device failed, the next step reports an error too
	}
}

// ReferenceNS returns the duration of the probe on the warm device. The result is an unmeasured time if the
// Probe is nil.
func (c *Probe) ReferenceNS() trace.Time {
	if c == nil || c.reference <= 0 {
		return trace.Time{}
	}
	return trace.Measured(int64(c.reference))
}
