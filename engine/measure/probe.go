package measure

import (
	"context"
	"fmt"
	"time"

	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/trace"
)

// Probe is a fixed kernel: what it takes says how fast the GPU's clock runs, whatever a step does. It is one
// workgroup that only multiplies, so neither memory nor other work of the step moves it.
type Probe struct {
	*Meter
	kernel Metered
	sent   gpu.Recording // of a run that was not told yet; nil where there is none
	// reference is what it took in ns once the device was warm.
	reference float64
}

const (
	// probeRounds take some 30 us on a GPU, warmingRounds half a millisecond and more in all its workgroups.
	probeRounds   = 256
	warmingRounds = 16 * probeRounds
	// The reference is what probeSteady runs in a row agree on to probeNoise, or the last after warmFor.
	probeSteady = 5
	probeNoise  = 0.005
)

// Release frees what it made.
func (c *Probe) Release() { c.Free() }

// settle runs it until it takes the same several times, and takes that for the reference. The GPU is warmed
// up before: one that had only been written to for seconds was steady too, at a fifth of its clock.
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

// Send submits a run: twice the kernel, for the first brings its code.
func (c *Probe) Send() (err error) {
	c.sent, err = c.Meter.send(c.kernel, 1, 1, 2)
	return err
}

// heard is what the run that was sent took in ns.
func (c *Probe) heard() (float64, error) {
	sent := c.sent
	c.sent = nil
	times, err := c.times(sent, 2)
	if err != nil {
		return 0, err
	}
	return times[1], nil
}

// NewProbe gets a probe ready, which warms the GPU up, for a fraction of a second.
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

// Submitted reports whether a run was submitted whose speed was not read yet.
func (c *Probe) Submitted() bool { return c.sent != nil }

// Speed waits for the run that was submitted and returns its speed in proportion to that on the warm device.
// A faster one shows that the device was not warm yet: that is the reference from then on.
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

// Forget ends a run that nobody asks for.
func (c *Probe) Forget() {
	if c != nil && c.sent != nil {
		_, _ = c.heard() // what ails it ails the next step
	}
}

// ReferenceNS is the probe's time on the warm device, unmeasured where there is no probe.
func (c *Probe) ReferenceNS() trace.Time {
	if c == nil || c.reference <= 0 {
		return trace.Time{}
	}
	return trace.Measured(int64(c.reference))
}
