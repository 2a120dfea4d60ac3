package headline

import (
	"slices"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
)

// Pace is the measured speed that the steps of a selection have if neither blocks nor dispatches are timed.
// Its methods model how the speed changes if the GPU needs less time for a step.
type Pace struct {
	Phase trace.Phase
	// Tokens is the number of tokens by which a step makes the text longer. It is 0 for a program that is not
	// a language model. Rates are then steps per second.
	Tokens int
	analyze.Untimed

	own int64 // time in ns that the CPU needs for a step; 0 if not known
}

// PaceOf returns the pace of the steps of a selection. One step takes another time whenever it runs, so for a
// single warm step the pace is that of all warm steps of its phase that took the same routes. Unlike decode
// steps, steps of other phases can have different numbers of tokens. If they do, the pace is that of the last
// selected step alone.
func PaceOf(x *analyze.Index, selection analyze.Selection) Pace {
	if len(selection.Steps) == 0 {
		return Pace{}
	}
	step := selection.Last()
	if len(selection.Steps) == 1 {
		if phase := x.Routed(x.Phase(x.Trace.Steps[step].Phase)); slices.Contains(phase.Steps, step) {
			selection = phase
		}
	}
	if !sameWork(x, selection) {
		selection = x.Step(step)
	}
	last := &x.Trace.Steps[selection.Last()]
	p := Pace{Phase: last.Phase, Tokens: analyze.Progress(last), Untimed: x.UntimedOf(selection)}
	if own, ok := analyze.OwnNS(last); ok {
		p.own = own
	}
	return p
}

// sameWork reports whether all steps of a selection belong to one phase and have the same number of tokens.
func sameWork(x *analyze.Index, selection analyze.Selection) bool {
	last := &x.Trace.Steps[selection.Last()]
	return !slices.ContainsFunc(selection.Steps, func(step int) bool {
		s := &x.Trace.Steps[step]
		return s.Phase != last.Phase || len(s.Tokens) != len(last.Tokens)
	})
}

// Unit is the unit of rates: "tokens/s", or "steps/s" for a program that is not a language model.
func (p *Pace) Unit() string {
	if p.Tokens == 0 {
		return "steps/s"
	}
	return "tokens/s"
}

// Rate returns the measured rate. The bool is false if the wall time of a step without detailed timing is not
// known.
func (p *Pace) Rate() (perS float64, ok bool) { return p.Faster(0) }

// Faster returns the modelled rate if the GPU needed less time for each step. `saved` is the saved time in
// ns. If steps are pipelined, they do not become faster than the CPU. The bool is false if the rate is not
// known.
func (p *Pace) Faster(saved float64) (perS float64, ok bool) {
	wall, known := p.Wall.NS()
	if !known || wall <= 0 {
		return 0, false
	}
	ns := float64(wall) - saved
	if p.Pipelined {
		ns = min(max(ns, float64(p.own)), float64(wall))
	}
	if ns <= 0 {
		return 0, false
	}
	return float64(max(1, p.Tokens)) * 1e9 / ns, true
}

// Saved converts a share of the GPU time of a step to ns. If the GPU time of the steps of this pace is not
// known, `whole` is used instead: the GPU time, in ns, of the step in which the share was measured. The
// result is at most the wall time, because the GPU time and the wall time can be from different steps.
func (p *Pace) Saved(share, whole float64) float64 {
	if gpu, ok := p.GPU.NS(); ok {
		whole = float64(gpu)
	}
	if wall, ok := p.Wall.NS(); ok {
		whole = min(whole, float64(wall))
	}
	return share * whole
}

// Twice returns the modelled rate if the dispatches whose cost was measured were twice as fast. The step
// then saves half of the cost. The bool is false if the rate is not known, or if the cost is not
// significantly larger than 0.
func (p *Pace) Twice(c *analyze.RowCost, whole *trace.Whole) (perS float64, ok bool) {
	if !c.Known() || !c.Significant() || c.NS <= 0 || c.Share <= 0 || whole == nil {
		return 0, false
	}
	return p.Faster(p.Saved(c.Share/2, float64(whole.NS)))
}
