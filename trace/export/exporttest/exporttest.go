// Package exporttest computes, for the tests of export formats, what a file must contain. The sums are those
// of the trace itself, in big integers, so that no sum overflows.
package exporttest

import (
	"math/big"

	"gpuscope/trace"
)

// Sums are totals over dispatches.
type Sums struct{ Dispatches, Workgroups, Wasted, GPU *big.Int }

// Totals are the totals of a trace.
type Totals struct {
	Steps map[int]Sums // for each Step.Index
	// Timed is the number of times that were measured: those of dispatches, or those of blocks in steps that
	// were timed by blocks.
	Timed int
	GPU   *big.Int // sum of these times in ns
}

// TotalsOf returns the totals of a trace.
func TotalsOf(t *trace.Trace) Totals {
	r := Totals{Steps: map[int]Sums{}, GPU: new(big.Int)}
	for i := range t.Steps {
		s := &t.Steps[i]
		sums := Sums{new(big.Int), new(big.Int), new(big.Int), new(big.Int)}
		for _, d := range s.Dispatches {
			p := &t.Plans[d.Plan]
			sums.Dispatches.Add(sums.Dispatches, big.NewInt(1))
			launched := big.NewInt(1)
			for _, n := range p.Workgroups {
				launched.Mul(launched, big.NewInt(int64(n)))
			}
			sums.Workgroups.Add(sums.Workgroups, launched)
			sums.Wasted.Add(sums.Wasted, launched.Sub(launched, big.NewInt(p.NeededGroups)))
		}
		for ns := range Times(s) {
			r.Timed++
			sums.GPU.Add(sums.GPU, big.NewInt(ns))
			r.GPU.Add(r.GPU, big.NewInt(ns))
		}
		r.Steps[s.Index] = sums
	}
	return r
}

// Times yields the measured times of the dispatches of a step in ns, or those of its blocks if the step was
// timed by blocks.
func Times(s *trace.Step) func(yield func(int64) bool) {
	return func(yield func(int64) bool) {
		if s.Timing == trace.TimingBlock && len(s.Blocks) > 0 {
			for _, b := range s.Blocks {
				if ns, ok := b.GPUNS.NS(); ok && !yield(ns) {
					return
				}
			}
			return
		}
		for _, d := range s.Dispatches {
			if ns, ok := d.GPUNS.NS(); ok && !yield(ns) {
				return
			}
		}
	}
}

// Untimed removes all times from the steps of a trace, and returns the trace.
func Untimed(t *trace.Trace) *trace.Trace {
	for i := range t.Steps {
		s := &t.Steps[i]
		s.GPU, s.Blocks, s.Timing = nil, nil, trace.TimingOff
		cpu := s.CPU
		s.CPU = trace.CPU{Passes: cpu.Passes, Submits: cpu.Submits, Writes: cpu.Writes}
		for j := range s.Dispatches {
			d := &s.Dispatches[j]
			d.GPUNS, d.StartNS, d.Samples, d.Raw = trace.Time{}, trace.Time{}, nil, [2]trace.Tick{}
		}
		s.Resize.NS = trace.Time{}
	}
	return t
}
