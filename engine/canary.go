package engine

import (
	"gpuscope/engine/graph"
	"gpuscope/engine/measure"
)

// UseCanary prepares the clock probe. This warms the GPU up and takes a fraction of a second. UseCanary does
// nothing on a device without GPU timestamps.
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

// Canary runs the clock probe and returns the clock speed relative to the warm device: 0.97 means that the
// clock is 3 % slower. Canary returns 0 if there is no probe. Call Canary between steps; the probe does not
// change the results of a step. While a step is in flight, Canary submits the probe after the step and
// returns 0 without waiting; the next call returns the speed. If Canary waited for the probe, the GPU would
// run out of work.
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
