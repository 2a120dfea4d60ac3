package inspect

import (
	"fmt"

	"gpuscope/trace"
	"gpuscope/trace/table"
)

// waits is the part of a step that the GPU may wait for the CPU before that is what is said of the step.
const waits = 0.1

// verdict says what bounds an untimed step, with the figure that says so, or why that is not known.
func (x *Index) verdict(step int, u *Untimed) string {
	s := &x.Trace.Steps[step]
	wall, ok1 := u.Wall.NS()
	gpu, ok2 := u.GPU.NS()
	switch {
	case !u.Known() && !untimed(s):
		return "what bounds the untimed step is not known: it ran only with every " + s.Timing + " timed"
	case !ok1 || wall <= 0:
		return "what bounds the untimed step is not known: its wall time was not measured"
	case !ok2 || gpu <= 0:
		return "what bounds the untimed step is not known: its GPU time was not measured"
	}
	wait := wall - gpu
	share := float64(wait) / float64(wall)
	if share >= waits {
		line := fmt.Sprintf("%.0f %% of the step the GPU waits for the CPU: %s of %s", 100*share,
			table.MillisBare(wait, true), millis(u.Wall))
		if share > 0.5 {
			line = "CPU-bound: " + line
		}
		if tokens := progress(s); s.Phase == "decode" {
			line += fmt.Sprintf(". Encoding while it runs would give %.0f → %.0f tok/s at most",
				u.tokensPerS(tokens), float64(tokens)*1e9/float64(max(gpu, wait)))
		}
		return line
	}
	took := fmt.Sprintf("the GPU takes %s of %s", table.MillisBare(gpu, true), millis(u.Wall))
	roof := x.roofNS(s)
	switch {
	case x.Trace.Device.Software():
		return took + "; on a software device compare ratios only"
	case roof == 0:
		return took + "; what bounds it there is not known without the device's ceilings"
	case 2*roof < float64(gpu):
		line := fmt.Sprintf("latency-bound: at the device's ceilings the work takes ~%s of the %s that the GPU takes",
			table.MillisBare(int64(roof), true), millis(u.GPU))
		if n := len(x.levelStarts(step)); n > 0 {
			line += fmt.Sprintf(", in %s one behind the other", table.Plural(n, "level"))
		}
		return line
	}
	return fmt.Sprintf("GPU-bound: %s, and at the device's ceilings the work would take ~%s", took,
		table.MillisBare(int64(roof), true))
}

// roofNS is in how long the device could do the work of a step: of each dispatch the longer of its bytes at
// the copy rate and its FLOPs at the FLOP rate. Modelled; 0 where no ceiling is known.
func (x *Index) roofNS(s *trace.Step) float64 {
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

// roofNS is in how many ns the ceilings let so many bytes be moved and FLOPs be done, at the same time. The
// bytes are a part of a working set, which says how fast they come.
func roofNS(c *trace.Ceilings, bytes, flops, set float64) float64 {
	best := 0.0
	if rate := copyRate(c, int64(set)); rate > 0 {
		best = bytes * 1e9 / rate
	}
	if c.FlopsPerS > 0 {
		best = max(best, flops*1e9/c.FlopsPerS)
	}
	return best
}
