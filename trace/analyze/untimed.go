package analyze

import (
	"fmt"
	"math"
	"slices"

	"gpuscope/trace"
)

// Untimed holds the times of a step that ran with at most two timestamps, one before and one after its GPU
// work. A step in which every dispatch is timed takes about three times as long. Therefore only an untimed
// run shows how fast a step really is, and whether the CPU or the GPU limits it.
type Untimed struct {
	Wall   trace.Time // whole step, until its output token is known
	Before trace.Time // from the start of the step to the first tick of the GPU
	GPU    trace.Time // from the first tick to the last
	After  trace.Time // from the last tick to the end of the step
	N      int        // number of runs, of which the times are medians
	// WallOff and GPUOff are the uncertainties (±) of Wall and of GPU. They are not measured if there were
	// too few runs.
	WallOff, GPUOff trace.Time
	// Pipelined reports that each step was submitted before the result of the previous step was read. It is
	// always false for times of repeats.
	Pipelined bool
	// From is set if the times are those of repeats. It names the step and the number of repeats: "s126 ×8".
	From string
	// Cost is how much longer the step takes on the wall clock if every dispatch is timed: "+260%".
	Cost string
}

// Known reports whether the wall time or the GPU time is known.
func (u *Untimed) Known() bool { return Measured(u.Wall) || Measured(u.GPU) }

// Split reports whether the wall time can be divided into GPU time and the rest.
func (u *Untimed) Split() bool { return Measured(u.CPU()) }

// CPU returns the wall time minus the GPU time: the time in which the GPU does no work for this step.
func (u *Untimed) CPU() trace.Time { return Minus(u.Wall, u.GPU) }

// Untimed returns the times that a step takes if its dispatches are not timed. If the recorded run timed only
// the whole step, the times are from this run. Otherwise they are from untimed repeats of this step. Other
// steps have other times, so their times are never used.
func (x *Index) Untimed(step int) Untimed {
	s := &x.Trace.Steps[step]
	if TimedWhole(s) {
		return untimedItself(s)
	}
	return x.UntimedAgain(s)
}

// UntimedAgain returns the times of those repeats of a step in which at most the whole step was timed, and
// not each dispatch. The repeats come from an Observe command or from a cost measurement. Times from these
// two sources are never combined, because the wall time and the GPU time must come from the same runs.
func (x *Index) UntimedAgain(s *trace.Step) Untimed {
	var u Untimed
	if o := x.Trace.Observer; o != nil && o.Step != nil && *o.Step == s.Index {
		u = observed(o)
	}
	if s.Whole == nil || u.Split() {
		return u
	}
	if rounds := inRounds(s); rounds.Split() || !u.Known() {
		return rounds
	}
	return u
}

// In each round, a cost measurement also runs the whole step without skipping any dispatch. inRounds returns
// the times of these runs.
func inRounds(s *trace.Step) Untimed {
	w := s.Whole
	u := Untimed{
		GPU: trace.Measured(w.NS), GPUOff: w.OffNS, WallOff: w.WallOff, N: w.N,
		From: fmt.Sprintf("s%d ×%d", s.Index, w.N),
	}
	// w.WallNS excludes the time before the first command and after the wait. It can be a median of fewer
	// than N runs.
	if ns, ok := w.WallNS.NS(); ok && (Measured(w.WallOff) || w.N < trace.FewestWithin) {
		u.Wall = trace.Measured(Add(ns, sum(s.CPU.ResizeNS, s.CPU.UploadNS, s.CPU.SampleNS)))
	}
	if s.Timing == trace.TimingDispatch && !s.Cold {
		u.Cost = added(s.CPU.TotalNS, u.Wall, u.WallOff)
	}
	u.Rest()
	return u
}

// added returns by how many percent the timed wall time exceeds the untimed wall time, such as "+260%". It
// returns "" if one of the two was not measured. It also returns "" if the difference is not larger than the
// error of the untimed time.
func added(timed, untimed, off trace.Time) string {
	more, ok := Minus(timed, untimed).NS()
	least, known := off.NS()
	if ns, _ := untimed.NS(); ok && ns > 0 && known && max(more, -more) > least {
		return fmt.Sprintf("%+.0f%%", 100*float64(more)/float64(ns))
	}
	return ""
}

// sum returns the sum of the measured times. A time that was not measured counts as 0.
func sum(times ...trace.Time) int64 {
	var all int64
	for _, t := range times {
		ns, _ := t.NS()
		all = Add(all, ns)
	}
	return all
}

// untimedItself returns the times of the recorded run of a step. If clock errors place the GPU's first tick
// before the submit, which is impossible, the time of the submit is used instead.
func untimedItself(s *trace.Step) Untimed {
	gpu := GPUOf(s)
	u := Untimed{Wall: s.CPU.TotalNS, GPU: gpu.SpanNS, N: 1, Pipelined: s.Pipelined}
	first, ok := gpu.StartNS.NS()
	submitted, both := s.CPU.SubmittedNS.NS()
	if ok && both {
		u.Before = Minus(trace.Measured(max(first, submitted)), s.CPU.StartNS)
	}
	u.Rest()
	return u
}

// Rest computes After: the part of the wall time that comes after the GPU's last tick. It marks impossible
// times as not measured. GPU can exceed Wall if the two are from different runs on an unsteady device. Before
// can be negative because of the error between two clocks.
func (u *Untimed) Rest() {
	if ns, ok := u.Before.NS(); ok && ns < 0 {
		u.Before = trace.Time{}
	}
	if ns, ok := u.CPU().NS(); ok && ns < 0 {
		u.GPU, u.Before = trace.Time{}, trace.Time{}
	}
	if ns, ok := Minus(Minus(u.Wall, u.Before), u.GPU).NS(); ok {
		u.After = trace.Measured(max(0, ns))
	}
}

// Observes reports whether the measurement of an observer applies to the given steps. It does so if the
// observed step is one of them, or if the trace does not contain the observed step.
func (x *Index) Observes(o *trace.Observer, steps []int) bool {
	is := func(step int) bool { return o.Step != nil && x.Trace.Steps[step].Index == *o.Step }
	return slices.ContainsFunc(steps, is) || !slices.ContainsFunc(x.EveryStep(), is)
}

// observed returns the times in the measurement of an observer.
func observed(o *trace.Observer) Untimed {
	from := fmt.Sprintf("×%d", o.N)
	if o.Step != nil {
		from = fmt.Sprintf("s%d ×%d", *o.Step, o.N)
	}
	u := Untimed{
		Wall: o.UntimedNS, Before: o.BeforeNS, GPU: o.SpanNS, WallOff: o.UntimedOff, GPUOff: o.SpanOff,
		N: o.N, From: from,
		Cost: added(o.TimedNS, o.UntimedNS, o.UntimedOff),
	}
	u.Rest()
	return u
}

// RanUntimed returns the steps of a selection that have a wall time and in which only the whole step was
// timed. If some of them were stepped and some pipelined, only the larger of the two groups is returned,
// because their wall times differ.
func (x *Index) RanUntimed(selection Selection) []int {
	by := map[bool][]int{}
	for _, step := range selection.Steps {
		if s := &x.Trace.Steps[step]; TimedWhole(s) && Measured(s.CPU.TotalNS) {
			by[s.Pipelined] = append(by[s.Pipelined], step)
		}
	}
	return by[len(by[true]) > len(by[false])]
}

// UntimedOf returns the untimed times of a selection. They are medians of the steps that RanUntimed returns.
// If there are none, they are the times of the last step that has untimed repeats.
func (x *Index) UntimedOf(selection Selection) Untimed {
	if step, one := selection.One(); one {
		return x.Untimed(step)
	}
	if len(selection.Steps) == 0 {
		return Untimed{}
	}
	var walls, befores, spans []int64
	steps := x.RanUntimed(selection)
	add := func(list *[]int64, t trace.Time) {
		if ns, ok := t.NS(); ok {
			*list = append(*list, ns)
		}
	}
	for _, step := range steps {
		u := untimedItself(&x.Trace.Steps[step])
		add(&walls, u.Wall)
		add(&befores, u.Before)
		add(&spans, u.GPU)
	}
	if len(steps) == 0 {
		for _, step := range slices.Backward(selection.Steps) {
			if u := x.UntimedAgain(&x.Trace.Steps[step]); u.Known() {
				return u
			}
		}
		return Untimed{}
	}
	u := Untimed{N: len(steps), Pipelined: x.Trace.Steps[steps[0]].Pipelined}
	u.Wall, u.WallOff = medianOff(walls)
	if len(spans) == len(steps) { // only if the medians of GPU and Wall cover the same steps
		u.GPU, u.GPUOff = medianOff(spans)
	}
	if len(befores) == len(steps) {
		u.Before = StatsOf(befores).Time()
	}
	u.Rest()
	return u
}

// medianOff returns the median of one or more times, and the uncertainty of the median.
func medianOff(ns []int64) (median, off trace.Time) {
	median = StatsOf(ns).Time()
	is, _ := median.NS()
	return median, trace.OffBy(ns, is)
}

// Waits returns, in ns, the wall time in which the GPU does no work for the step, and the uncertainty (±) of
// this time. `ok` is false if there are too few runs to know the uncertainty.
func (u *Untimed) Waits() (ns, off int64, ok bool) {
	wait, split := u.CPU().NS()
	wall, ok1 := u.WallOff.NS()
	gpu, ok2 := u.GPUOff.NS()
	return wait, Whole(math.Hypot(float64(wall), float64(gpu))),
		split && ok1 && ok2 && u.N >= trace.FewestWithin
}

// Time returns the median, rounded to whole ns.
func (s Stats) Time() trace.Time {
	if !s.Measured() {
		return trace.Time{}
	}
	return trace.Measured(Whole(s.Median))
}

// TokensPerS returns the rate of steps that read the given number of tokens each. The rate is 0 if the wall
// time is not known.
func (u *Untimed) TokensPerS(tokens int) float64 {
	if ns, ok := u.Wall.NS(); ok && ns > 0 {
		return float64(tokens) * 1e9 / float64(ns)
	}
	return 0
}

// Mode returns "pipelined" or "stepped" (see Pipelined).
func (u *Untimed) Mode() string { return (&trace.Step{Pipelined: u.Pipelined}).Mode() }

// Waiting divides the time of a step into parts, from the start of the step until the CPU has finished
// waiting for the GPU. Busy and Idle are known only if dispatches or blocks were timed. Times that are
// differences of a CPU time and a GPU time have an error of Clock.ErrorNS.
type Waiting struct {
	Begin  trace.Time // from the start of the step to its submit
	ToTick trace.Time // from the submit to the GPU's first tick
	Span   trace.Time // from the first tick to the last; the sum of Busy and Idle
	Busy   trace.Time // the part of Span in which dispatches or blocks ran
	Idle   trace.Time // Span - Busy
	ToDone trace.Time // from the last tick until the host learned that the GPU was done
}

// Waiting returns the parts of the time of a step. If the step was not timed, none of them is measured.
func (x *Index) Waiting(step int) Waiting {
	s := &x.Trace.Steps[step]
	gpu, c := GPUOf(s), &s.CPU
	w := Waiting{Begin: Minus(c.SubmittedNS, c.StartNS), Span: gpu.SpanNS}
	if s.Timing == trace.TimingDispatch || s.Timing == trace.TimingBlock {
		w.Busy, w.Idle = gpu.BusyNS, Minus(gpu.SpanNS, gpu.BusyNS)
	}
	notBelow := func(t trace.Time) trace.Time {
		if ns, ok := t.NS(); ok {
			return trace.Measured(max(0, ns))
		}
		return t
	}
	w.ToTick = notBelow(Minus(gpu.StartNS, c.SubmittedNS))
	w.ToDone = notBelow(Minus(Minus(c.DoneNS, gpu.StartNS), gpu.SpanNS))
	return w
}

// EveryStep returns the indices of all steps.
func (x *Index) EveryStep() []int {
	steps := make([]int, len(x.Trace.Steps))
	for i := range steps {
		steps[i] = i
	}
	return steps
}

// WarmAgain returns the wall time of a step's untimed repeats on the warm device.
func WarmAgain(s *trace.Step) trace.Time {
	if s.Whole == nil {
		return trace.Time{}
	}
	return s.Whole.WallNS
}
