package engine

import (
	"gpuscope/engine/graph"
	"gpuscope/engine/measure"
)

// UseCanary gets the clock probe ready, which warms the GPU up, for a fraction of a second. It does nothing
// where there are no GPU times.
func (x *Executor) UseCanary(k *graph.CeilingKernels) error {
	if x.clock == nil || !x.clock.Scale.Known() {
		return nil
	}
	p, err := measure.NewProbe(x.dev, x.clock, k.FMA)
	if err != nil {
		return err
	}
	x.canary = p
	x.own(p)
	return nil
}

// Canary runs the clock probe and returns its speed in proportion to that on the warm device: 0.97 is a clock
// that is 3 % slower; 0 where there is no probe. It belongs between steps, whose results it leaves alone.
// While a step is on its way the probe is submitted after it, for the next call to return: to wait would
// leave the GPU without a step.
func (x *Executor) Canary() (float64, error) {
	p := x.canary
	if p == nil {
		return 0, nil
	}
	if !p.Submitted() {
		if err := p.Send(); err != nil || x.at(sent) != nil {
			return 0, err
		}
	}
	return p.Speed()
}
