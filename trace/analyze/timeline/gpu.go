package timeline

import (
	"gpuscope/trace"
	"gpuscope/trace/analyze"
)

// byBlock reports whether the GPU times of a step are those of blocks.
func byBlock(s *trace.Step) bool { return len(s.Blocks) > 0 && s.Timing == trace.TimingBlock }

// gpuBegin returns the measured instant at which the GPU started a step. The bool is false if no instant was
// measured.
func gpuBegin(s *trace.Step) (at int64, known bool) {
	if s.GPU != nil {
		if at, known = s.GPU.StartNS.NS(); known {
			return at, true
		}
	}
	eachTime(s, func(_ int, start trace.Time, _ int64) {
		if ns, ok := start.NS(); ok && (!known || ns < at) {
			at, known = ns, true
		}
	})
	return at, known
}

// GPUStart returns when the GPU starts a step, in ns from the start of the step on the host. If either
// start was not measured, `placed` is false, and the GPU is assumed to start after the submit. The GPU
// cannot start before the submit. If the measured start is before the submit, the clocks have an error.
// GPUStart then returns the time of the submit, and `moved` is the difference to the measured start in ns.
// Otherwise `moved` is 0.
func GPUStart(s *trace.Step) (from, moved int64, placed bool) {
	start, ok := s.CPU.StartNS.NS()
	begin, known := gpuBegin(s)
	if !ok || !known {
		return Submitted(&s.CPU), 0, false
	}
	if submitted, ok := s.CPU.SubmittedNS.NS(); ok && begin < submitted {
		moved = analyze.Add(submitted, -begin)
	}
	return analyze.Add(analyze.Add(begin, moved), -start), moved, true
}

// eachTime calls f for each measured GPU time of a step: for its blocks if they were timed, else for its
// dispatches. It passes the index, the start (which may be unmeasured), and the duration.
func eachTime(s *trace.Step, f func(i int, start trace.Time, ns int64)) {
	if byBlock(s) {
		for i := range s.Blocks {
			if ns, ok := s.Blocks[i].GPUNS.NS(); ok {
				f(i, s.Blocks[i].StartNS, ns)
			}
		}
		return
	}
	for i := range s.Dispatches {
		if ns, ok := s.Dispatches[i].GPUNS.NS(); ok {
			f(i, s.Dispatches[i].StartNS, ns)
		}
	}
}

// eachPlace calls f for each block or dispatch of a step with its start on the axis. A block or dispatch
// whose start was not measured starts where the previous one ends.
func (p *place) eachPlace(s *trace.Step, f func(i int, from, ns int64)) {
	next := p.after
	eachTime(s, func(i int, start trace.Time, ns int64) {
		from := next
		if at, ok := start.NS(); ok {
			from = analyze.Add(at, p.shift)
		}
		next = analyze.Add(from, ns)
		f(i, from, ns)
	})
}

// placeGPU determines the position of the GPU's part of a step on the axis. It adds `base` to measured
// instants.
func (t *Timeline) placeGPU(s *trace.Step, p *place, base int64) {
	begin, known := gpuBegin(s)
	_, p.moved, _ = GPUStart(s)
	p.gpuPlaced, p.shift = known, analyze.Add(base, p.moved)
	if p.after = analyze.Add(begin, p.shift); !known {
		p.after = analyze.Add(p.host, Submitted(&s.CPU))
	}
	widen := func(from, ns int64) {
		end := analyze.Add(from, ns)
		if !p.onGPU {
			p.gpu, p.gpuEnd, p.onGPU = from, end, true
		}
		p.gpu, p.gpuEnd = min(p.gpu, from), max(p.gpuEnd, end)
	}
	if ns, ok := analyze.GPUOf(s).SpanNS.NS(); ok {
		widen(p.after, ns)
	}
	p.eachPlace(s, func(_ int, from, ns int64) { widen(from, ns) })
}
