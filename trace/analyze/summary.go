package analyze

import "gpuscope/trace"

// StepSummary holds the times of a step: the wall time, and which part of it is CPU time and GPU time. Each
// time may be not measured.
type StepSummary struct {
	Step    *trace.Step
	Index   *Index
	At      int  // index of Step in Trace.Steps
	Planned bool // the step was only planned, without a device; no time was measured
	// Untimed holds the times that the step takes if its dispatches are not timed.
	Untimed    Untimed
	FewSamples bool    // there are too few untimed runs to tell what bounds the step
	TokensPerS float64 // rate of the untimed step; 0 if not known

	// The following times are those of the recorded run.
	Wall       trace.Time // from the start to the end of the step on the CPU
	Busy       trace.Time // Σgpu: sum of the isolated times of all dispatches (medians of repeats, if any)
	Repeats    int        // number of repeats whose medians are in Busy; 0 if Busy is from one run
	Dispatches int
	Levels     int        // number of levels; 0 if not recorded
	Compiled   trace.Time // time to compile pipelines
}

// Measured reports whether a time was measured.
func Measured(t trace.Time) bool {
	_, ok := t.NS()
	return ok
}

// GPUOf returns the GPU times of a step. If the trace has none for this step, all times in the result are not
// measured.
func GPUOf(s *trace.Step) trace.GPU {
	if s.GPU == nil {
		return trace.GPU{}
	}
	return *s.GPU
}

// Minus returns t - u. If t or u is unmeasured, so is the result.
func Minus(t, u trace.Time) trace.Time {
	a, ok := t.NS()
	b, both := u.NS()
	if !ok || !both {
		return trace.Time{}
	}
	return trace.Measured(Add(a, -b))
}

// plus adds ns to a time. A time that was not measured counts as 0.
func plus(t trace.Time, ns int64) trace.Time {
	before, _ := t.NS()
	return trace.Measured(Add(before, ns))
}

// Summary computes the summary of a step.
func (x *Index) Summary(step int) *StepSummary {
	t := x.Trace
	s := &t.Steps[step]
	r := &StepSummary{
		Step: s, Index: x, At: step, Planned: t.Device.None(), Untimed: x.Untimed(step),
		Wall:       s.CPU.TotalNS,
		Dispatches: len(s.Dispatches), Levels: len(x.LevelStarts(step)),
	}
	r.Busy, r.Repeats = x.BusyOf(s)
	r.Compiled = CompileTime(s)
	r.TokensPerS = r.Untimed.TokensPerS(len(s.Tokens))
	r.FewSamples = x.fewSamples(s, &r.Untimed)
	return r
}

// BusyOf returns the sum of the isolated times of a step's dispatches. If the dispatches were repeated, it is
// the sum of their medians, and `repeats` is the smallest number of repeats of a dispatch. The header, the
// tables and the views all show this sum. It is not measured if only blocks were timed (see BlocksNS).
func (x *Index) BusyOf(s *trace.Step) (busy trace.Time, repeats int) {
	if !Repeated(s) {
		return recorded(s), 0
	}
	made, there := x.Graph.sums.Load(&s.Dispatches[0])
	if !there {
		made = sumOfMedians(s)
		x.Graph.sums.Store(&s.Dispatches[0], made)
	}
	return made.(stepSum).busy, made.(stepSum).repeats
}

// recorded returns the sum of the isolated times of the dispatches in the recorded run of a step.
func recorded(s *trace.Step) trace.Time {
	if s.Timing == trace.TimingBlock {
		return trace.Time{}
	}
	return GPUOf(s).BusyNS
}

// BlocksNS returns the sum of the times of a step's blocks. It is not measured if the recorded run did not
// time blocks.
func BlocksNS(s *trace.Step) trace.Time {
	if s.Timing != trace.TimingBlock {
		return trace.Time{}
	}
	return GPUOf(s).BusyNS
}

// stepSum is the sum of the median times of the dispatches of a step that was repeated.
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
			return stepSum{recorded(s), 0}
		}
		if i == 0 || n < repeats {
			repeats = n
		}
		sum += TimeOf(d).Median
	}
	return stepSum{trace.Measured(Whole(sum)), repeats}
}

// TokensPerS returns how many input tokens per second a step processed in the recorded run, at the timing
// level of this run. The rate is 0 if the wall time was not measured.
func TokensPerS(s *trace.Step) float64 {
	u := Untimed{Wall: s.CPU.TotalNS}
	return u.TokensPerS(len(s.Tokens))
}

// SumName is the name of the sum of the isolated times in tables and views.
const SumName = "Σgpu"
