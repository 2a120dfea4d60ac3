package analyze

import "gpuscope/trace"

// fewSamples reports whether there are too few untimed runs of a step to tell what bounds it. For a cold
// step, it counts the warm repeats instead of the recorded run if the step has warm repeats.
func (x *Index) fewSamples(s *trace.Step, u *Untimed) bool {
	if s.Cold && TimedWhole(s) {
		if warm := x.UntimedAgain(s); warm.Split() {
			return warm.FewSamples()
		}
	}
	return u.FewSamples()
}

// FewSamples reports whether there are untimed runs of the step, but too few to tell what bounds it.
func (u *Untimed) FewSamples() bool { return u.Known() && u.N < trace.FewestWithin }

// OwnNS returns the time in ns for which the CPU worked in a recorded step. It includes the work of timing.
// It excludes the wait for the GPU, and CPU work that was done while the GPU worked. The bool is false if the
// time of encoding was not measured.
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

// RoofNS returns the shortest time in ns in which the device could do the work of a step, according to the
// model. The time of a dispatch is then the larger of two times: the time to move its bytes at the copy rate,
// and the time to compute its FLOPs at the FLOP rate. RoofNS returns 0 if no ceilings were measured.
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

// streamed returns the modelled bytes that all dispatches of a step move. The same bytes are used again only
// in the next step. This number is therefore the size of the working set, on which the copy rate depends.
func (x *Index) streamed(s *trace.Step) float64 {
	all := 0.0
	for _, d := range s.Dispatches {
		all += float64(x.Trace.Plans[d.Plan].Bytes)
	}
	return all
}

// roofNS returns the shortest time in ns in which a device with these ceilings can move `bytes` bytes and
// compute `flops` FLOPs, if it does both at the same time. `set` is the size of the working set in bytes, on
// which the copy rate depends.
func roofNS(c *trace.Ceilings, bytes, flops, set float64) float64 {
	mem, fp := c.Roofs(bytes, flops, set)
	return max(mem, fp)
}
