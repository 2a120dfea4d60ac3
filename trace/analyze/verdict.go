package analyze

import "gpuscope/trace"

// fewSamples reports whether there are too few untimed runs to tell what bounds a step. For a cold step,
// fewSamples counts the warm repeats of the step if there are any.
func (x *Index) fewSamples(s *trace.Step, u *Untimed) bool {
	if s.Cold && TimedWhole(s) {
		if warm := x.UntimedAgain(s); warm.Split() {
			return warm.FewSamples()
		}
	}
	return u.FewSamples()
}

// FewSamples reports whether the step was run untimed, but not often enough to tell what bounds the step.
func (u *Untimed) FewSamples() bool { return u.Known() && u.N < trace.FewestWithin }

// OwnNS returns the time in ns that the CPU worked in a recorded step, including the work of timing. OwnNS
// excludes the wait for the GPU and the CPU work that overlapped with GPU work. OwnNS returns false if the
// encoding time was not measured.
func OwnNS(s *trace.Step) (int64, bool) {
	c := &s.CPU
	all := sum(c.ResizeNS, c.UploadNS, c.EncodeNS, c.SubmitNS, c.SampleNS)
	return all - sum(c.OverlappedNS), Measured(c.EncodeNS)
}

// Wasted returns the waste of all dispatches of a step.
func (x *Index) Wasted(s *trace.Step) Waste {
	var w Waste
	for _, d := range s.Dispatches {
		w = w.Plus(WasteOf(&x.Trace.Plans[d.Plan], nil))
	}
	return w
}

// RoofNS returns the shortest modelled time in ns in which the device could do the work of a step. A dispatch
// takes the time to move its bytes at the copy rate, or to compute its FLOPs at the FLOP rate, whichever is
// longer. RoofNS returns 0 if no ceiling was measured.
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

// streamed returns the modelled bytes of all dispatches of a step. The step moves this many bytes before it
// uses the same bytes again, so this is the working set that decides the copy rate.
func (x *Index) streamed(s *trace.Step) float64 {
	all := 0.0
	for _, d := range s.Dispatches {
		all += float64(x.Trace.Plans[d.Plan].Bytes)
	}
	return all
}

// roofNS returns the time in ns to move some bytes and do some FLOPs concurrently at the ceilings. set is
// the working set in bytes, which decides the copy rate.
func roofNS(c *trace.Ceilings, bytes, flops, set float64) float64 {
	mem, fp := c.Roofs(bytes, flops, set)
	return max(mem, fp)
}
