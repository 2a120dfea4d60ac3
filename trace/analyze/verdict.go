package analyze

import (
	"gpuscope/trace"
)

// fewSamples reports that the untimed runs are too few to say what bounds a step; of a cold one, the warm
// runs of the same step where there are some.
func (x *Index) fewSamples(s *trace.Step, u *Untimed) bool {
	if s.Cold && TimedWhole(s) {
		if warm := x.UntimedAgain(s); warm.Split() {
			return warm.FewSamples()
		}
	}
	return u.FewSamples()
}

// FewSamples reports that a step was run untimed, but too few times to say what bounds it.
func (u *Untimed) FewSamples() bool { return u.Known() && u.N < trace.FewestWithin }

// OwnNS is what the CPU itself did in a step, as it was measured there, its timing included: all but the
// wait, and but what it did while the GPU had work. False where its encoding was not measured.
func OwnNS(s *trace.Step) (int64, bool) {
	c := &s.CPU
	all := sum(c.ResizeNS, c.UploadNS, c.EncodeNS, c.SubmitNS, c.SampleNS)
	return all - sum(c.OverlappedNS), Measured(c.EncodeNS)
}

// Wasted is what a step launched without need.
func (x *Index) Wasted(s *trace.Step) Waste {
	var w Waste
	for _, d := range s.Dispatches {
		w = w.Plus(WasteOf(&x.Trace.Plans[d.Plan], nil))
	}
	return w
}

// RoofNS is in how long the device could do the work of a step: of each dispatch the longer of its bytes at
// the copy rate and its FLOPs at the FLOP rate. Modelled; 0 where no ceiling is known.
func (x *Index) RoofNS(s *trace.Step) float64 {
	c := x.Trace.Device.Ceilings
	if c == nil {
		return 0
	}
	sum, all := 0.0, x.streamed(s)
	for _, d := range s.Dispatches {
		p := &x.Trace.Plans[d.Plan]
		sum += roofNS(c, float64(p.Bytes), float64(p.FLOPs), all)
	}
	return sum
}

// streamed is what passes through the device in a step between two uses of the same bytes: the working set of
// each of its dispatches.
func (x *Index) streamed(s *trace.Step) float64 {
	all := 0.0
	for _, d := range s.Dispatches {
		all += float64(x.Trace.Plans[d.Plan].Bytes)
	}
	return all
}

// roofNS is in how many ns the ceilings let so many bytes be moved and FLOPs be done, at the same time.
func roofNS(c *trace.Ceilings, bytes, flops, set float64) float64 {
	mem, fp := c.Roofs(bytes, flops, set)
	return max(mem, fp)
}
