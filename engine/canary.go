package engine

import (
	"context"
	"fmt"
	"time"

	"gpuscope/engine/gpu"
	"gpuscope/trace"
)

// canary is a fixed kernel: what it takes says how fast the GPU's clock runs, whatever a step does. It is one
// workgroup that only multiplies, so neither memory nor other work of the step moves it.
type canary struct {
	*meter
	kernel metered
	sent   gpu.Recording // of a run that was not told yet; nil where there is none
	// reference is what it took in ns once the device was warm.
	reference float64
}

const (
	// canaryRounds take some 30 us on a GPU, warmingRounds half a millisecond and more in all its workgroups.
	canaryRounds  = 256
	warmingRounds = 16 * canaryRounds
	// The reference is what canarySteady runs in a row agree on to canaryNoise, or the last after warmFor.
	canarySteady = 5
	canaryNoise  = 0.005
)

// UseCanary gets a canary ready, which warms the GPU up, for a fraction of a second. It does nothing where
// there are no GPU times.
func (x *Executor) UseCanary(k *CeilingKernels) error {
	if x.clock == nil || !x.clock.scale.known() {
		return nil
	}
	c := &canary{}
	var err error
	if c.meter, err = newMeter(x.dev, x.clock, 4); err != nil {
		return fmt.Errorf("canary: %w", err)
	}
	out, err := x.dev.NewBuffer("canary", 4, 0)
	if err == nil {
		c.owned = append(c.owned, out)
		c.kernel, err = c.bind(k.FMA, out)
	}
	if err == nil {
		err = c.settle()
	}
	if err != nil {
		c.release()
		return fmt.Errorf("canary: %w", err)
	}
	x.canary = c
	x.own(c)
	return nil
}

// Release frees what it made.
func (c *canary) Release() { c.release() }

// settle runs it until it takes the same several times, and takes that for the reference. The GPU is warmed
// up before: one that had only been written to for seconds was steady too, at a fifth of its clock.
func (c *canary) settle() error {
	if err := c.setFMA(warmingRounds); err != nil {
		return err
	}
	if err := c.warm(context.Background(), c.kernel); err != nil {
		return err
	}
	if err := c.setFMA(canaryRounds); err != nil {
		return err
	}
	steady := 0
	for start := time.Now(); steady < canarySteady && time.Since(start) < warmFor; {
		ns, err := c.warmed(c.kernel, 1)
		if err != nil {
			return err
		}
		if steady++; ns < c.reference*(1-canaryNoise) || ns > c.reference*(1+canaryNoise) {
			steady, c.reference = 1, ns
		}
	}
	return nil
}

// send submits a run: twice the kernel, for the first brings its code.
func (c *canary) send() (err error) {
	c.sent, err = c.meter.send(c.kernel, 1, 1, 2)
	return err
}

// heard is what the run that was sent took in ns.
func (c *canary) heard() (float64, error) {
	sent := c.sent
	c.sent = nil
	times, err := c.times(sent, 2)
	if err != nil {
		return 0, err
	}
	return times[1], nil
}

// Canary runs the canary and tells its speed in proportion to that on the warm device: 0.97 is a clock that
// is 3 % slower. A faster one shows that the device was not warm yet: that is the reference from then on. It
// is 0 where there is no canary. It belongs between steps, whose results it leaves alone. Where one is on its
// way the canary is sent behind it, for the next call to tell: to wait would leave the GPU without a step.
func (x *Executor) Canary() (float64, error) {
	c := x.canary
	if c == nil {
		return 0, nil
	}
	if c.sent == nil {
		if err := c.send(); err != nil || x.at(sent) != nil {
			return 0, err
		}
	}
	ns, err := c.heard()
	if err != nil || ns <= 0 {
		return 0, err
	}
	if ns*(1+trace.ClockMoved) < c.reference {
		c.reference = ns
	}
	return c.reference / ns, nil
}

// forget ends a run that nobody was told of.
func (c *canary) forget() {
	if c != nil && c.sent != nil {
		_, _ = c.heard() // what ails it ails the next step
	}
}

// referenceNS is what a trace says of the canary.
func (c *canary) referenceNS() trace.Time {
	if c == nil || c.reference <= 0 {
		return trace.Time{}
	}
	return trace.Measured(int64(c.reference))
}
