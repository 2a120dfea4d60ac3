package analyze

import (
	"gpuscope/trace"
)

// StepSummary is what a step cost and where its wall time went. What was not measured says so.
type StepSummary struct {
	Step    *trace.Step
	Index   *Index
	At      int  // of Step in the trace
	Planned bool // there was no device, and nothing below was measured
	// Untimed is the step as it runs when no dispatch in it is timed, and what bounds it then.
	Untimed    Untimed
	FewSamples bool    // more untimed runs would say more of what bounds the step
	TokensPerS float64 // untimed; 0 where that is not known

	// As it was recorded.
	Wall       trace.Time // CPU, whole
	Busy       trace.Time // Σgpu: each dispatch timed in isolation, of repeats the median
	Repeats    int        // that Busy is of; 0 where it is of the one run
	Span       trace.Time // GPU, first begin to last end
	IdleInSpan trace.Time // Span less what was timed in it, in that run
	Idle       trace.Time // Wall - Span
	Dispatches int
	Levels     int        // 0: not recorded
	Timing     trace.Time // modelled: what timing added to Busy, by the dispatch
	Work       trace.Time // modelled: Busy - Timing
	Compiled   trace.Time // compiling pipelines
}

// Measured reports whether there is a time at all.
func Measured(t trace.Time) bool {
	_, ok := t.NS()
	return ok
}

// GPUOf is a step on the GPU's clock; nothing in it is measured where the trace has none.
func GPUOf(s *trace.Step) trace.GPU {
	if s.GPU == nil {
		return trace.GPU{}
	}
	return *s.GPU
}

// Minus is a - b where both were measured.
func Minus(t, u trace.Time) trace.Time {
	a, ok := t.NS()
	b, both := u.NS()
	if !ok || !both {
		return trace.Time{}
	}
	return trace.Measured(Add(a, -b))
}

// plus is a time with more added; what was not measured counts as nothing.
func plus(t trace.Time, ns int64) trace.Time {
	before, _ := t.NS()
	return trace.Measured(Add(before, ns))
}

// Summary computes the summary of a step.
func (x *Index) Summary(step int) *StepSummary {
	t := x.Trace
	s := &t.Steps[step]
	gpu := GPUOf(s)
	r := &StepSummary{
		Step: s, Index: x, At: step, Planned: t.Device.None(), Untimed: x.Untimed(step),
		Wall: s.CPU.TotalNS, Span: gpu.SpanNS,
		IdleInSpan: Minus(gpu.SpanNS, gpu.BusyNS), Idle: Minus(s.CPU.TotalNS, gpu.SpanNS),
		Dispatches: len(s.Dispatches), Levels: len(x.LevelStarts(step)),
	}
	r.Busy, r.Repeats = x.BusyOf(s)
	r.Compiled = CompileTime(s)
	if per := t.Device.TimingNS(); s.Timing != trace.TimingBlock && Measured(r.Busy) && per > 0 {
		r.Timing = trace.Measured(Whole(per * float64(len(s.Dispatches))))
		r.Work = Minus(r.Busy, r.Timing)
	}
	r.TokensPerS = r.Untimed.TokensPerS(len(s.Tokens))
	r.FewSamples = x.fewSamples(s, &r.Untimed)
	return r
}

// BusyOf is the sum of a step's dispatches, each timed in isolation: of those that were repeated the medians,
// and how many repeats all of them have. Header, tables and views all say this sum.
func (x *Index) BusyOf(s *trace.Step) (busy trace.Time, repeats int) {
	if !Repeated(s) {
		return GPUOf(s).BusyNS, 0
	}
	made, there := x.Graph.sums.Load(&s.Dispatches[0])
	if !there {
		made = sumOfMedians(s)
		x.Graph.sums.Store(&s.Dispatches[0], made)
	}
	return made.(stepSum).busy, made.(stepSum).repeats
}

// stepSum is what the dispatches of a repeated step add up to.
type stepSum struct {
	busy    trace.Time
	repeats int
}

func sumOfMedians(s *trace.Step) stepSum {
	sum, repeats := 0.0, 0
	for i := range s.Dispatches {
		d := &s.Dispatches[i]
		n := len(d.Samples)
		if n == 0 {
			return stepSum{GPUOf(s).BusyNS, 0}
		}
		if i == 0 || n < repeats {
			repeats = n
		}
		sum += TimeOf(d).Median
	}
	return stepSum{trace.Measured(Whole(sum)), repeats}
}

// TokensPerS is how many tokens went into a step a second, at the level at which it was timed; 0 where its
// wall time was not measured.
func TokensPerS(s *trace.Step) float64 {
	u := Untimed{Wall: s.CPU.TotalNS}
	return u.TokensPerS(len(s.Tokens))
}

// SumName is the name of the sum of dispatches, each timed in isolation.
const SumName = "Σgpu"
