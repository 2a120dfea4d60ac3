package analyze

import (
	"fmt"
	"math"
	"slices"

	"gpuscope/trace"
)

// Untimed holds the times of a step that ran with at most two timestamps around it. Timing every dispatch
// makes a step about three times as long, so only untimed runs show how fast a step really is, and whether
// the CPU or the GPU limits it.
type Untimed struct {
	Wall   trace.Time // whole step, until its token is known
	Before trace.Time // from the start of the step to the first tick of the GPU
	GPU    trace.Time // from the first tick to the last
	After  trace.Time // from the last tick to the end of the step
	N      int        // number of runs; the times are their medians
	// WallOff and GPUOff are the uncertainties (±) of Wall and GPU. They are unknown if there are few runs.
	WallOff, GPUOff trace.Time
	// Pipelined reports that each step was submitted before the result of the previous step was read.
	// Repeated steps are never pipelined.
	Pipelined bool
	// From names the step and the number of runs if the times are from repeats: "s126 ×8".
	From string
	// Cost is how much longer the wall time of the step is when every dispatch is timed: "+260%".
	Cost string
}

// Known reports whether the wall time or the GPU time is known.
func (u *Untimed) Known() bool { return Measured(u.Wall) || Measured(u.GPU) }

// Split reports whether it is known how much of the wall time the GPU was working.
func (u *Untimed) Split() bool { return Measured(u.CPU()) }

// CPU returns the part of the wall time in which the GPU has no work of this step.
func (u *Untimed) CPU() trace.Time { return Minus(u.Wall, u.GPU) }

// Untimed returns the untimed times of a step. If only the whole step was timed, these are the times of the
// recorded run, else those of the untimed repeats. Times of other steps are never used, because they differ.
func (x *Index) Untimed(step int) Untimed {
	s := &x.Trace.Steps[step]
	if TimedWhole(s) {
		return untimedItself(s)
	}
	return x.UntimedAgain(s)
}

// UntimedAgain returns the durations of a step's repeats in which not every dispatch was timed. These are the
// repeats of the observer, or those of a cost measurement. The two are never combined, because the GPU time
// of one is not part of the wall time of the other.
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

// inRounds returns the times of the complete step in the rounds of its cost measurement.
func inRounds(s *trace.Step) Untimed {
	w := s.Whole
	u := Untimed{
		GPU: trace.Measured(w.NS), GPUOff: w.OffNS, WallOff: w.WallOff, N: w.N,
		From: fmt.Sprintf("s%d ×%d", s.Index, w.N),
	}
	if ns, ok := w.WallNS.NS(); ok { // add the time before the first command and after the wait
		u.Wall = trace.Measured(Add(ns, sum(s.CPU.ResizeNS, s.CPU.UploadNS, s.CPU.SampleNS)))
	}
	if s.Timing == trace.TimingDispatch && !s.Cold {
		u.Cost = added(s.CPU.TotalNS, u.Wall)
	}
	u.Rest()
	return u
}

// added returns by how many percent a timed wall time exceeds an untimed one: "+260%". added returns "" if
// one of the two times was not measured.
func added(timed, untimed trace.Time) string {
	more, ok := Minus(timed, untimed).NS()
	if ns, _ := untimed.NS(); ok && ns > 0 {
		return fmt.Sprintf("%+.0f%%", 100*float64(more)/float64(ns))
	}
	return ""
}

// sum adds times. A time that was not measured counts as 0.
func sum(times ...trace.Time) int64 {
	var all int64
	for _, t := range times {
		ns, _ := t.NS()
		all = Add(all, ns)
	}
	return all
}

// untimedItself returns the times of the recorded run of a step. The GPU's first tick cannot be earlier
// than the submit, so clock errors that make it earlier are corrected.
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

// Rest computes After, the part of the wall time after the GPU's last tick. On an unsteady device the GPU
// time can exceed the wall time, because the two come from different runs. The GPU time is then marked as
// unknown. A negative Before, caused by the error between two clocks, is marked as unknown too.
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

// Observes reports whether the measurement of an observer applies to one of the given steps. The
// measurement also applies if the observed step is not in the trace.
func (x *Index) Observes(o *trace.Observer, steps []int) bool {
	is := func(step int) bool { return o.Step != nil && x.Trace.Steps[step].Index == *o.Step }
	return slices.ContainsFunc(steps, is) || !slices.ContainsFunc(x.EveryStep(), is)
}

// observed returns the times that an observer measured.
func observed(o *trace.Observer) Untimed {
	from := fmt.Sprintf("×%d", o.N)
	if o.Step != nil {
		from = fmt.Sprintf("s%d ×%d", *o.Step, o.N)
	}
	u := Untimed{
		Wall: o.UntimedNS, Before: o.BeforeNS, GPU: o.SpanNS, WallOff: o.UntimedOff, GPUOff: o.SpanOff,
		N: o.N, From: from,
		Cost: added(o.TimedNS, o.UntimedNS),
	}
	u.Rest()
	return u
}

// RanUntimed returns the steps of a selection that ran untimed and have a wall time. Pipelined and stepped
// steps have different wall times, so only the larger of these two groups is returned.
func (x *Index) RanUntimed(selection Selection) []int {
	by := map[bool][]int{}
	for _, step := range selection.Steps {
		if s := &x.Trace.Steps[step]; TimedWhole(s) && Measured(s.CPU.TotalNS) {
			by[s.Pipelined] = append(by[s.Pipelined], step)
		}
	}
	return by[len(by[true]) > len(by[false])]
}

// UntimedOf returns the untimed times of a selection. The times are medians of the steps that ran untimed
// in one mode. If no step ran untimed, UntimedOf returns the times of the last step with untimed repeats.
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
	if len(spans) == len(steps) { // else the medians of GPU and Wall would cover different steps
		u.GPU, u.GPUOff = medianOff(spans)
	}
	if len(befores) == len(steps) {
		u.Before = StatsOf(befores).Time()
	}
	u.Rest()
	return u
}

// medianOff returns the median of at least one time, and its error.
func medianOff(ns []int64) (median, off trace.Time) {
	median = StatsOf(ns).Time()
	is, _ := median.NS()
	return median, trace.OffBy(ns, is)
}

// Waits returns the part of the wall time in which the GPU has no work of the step, and the uncertainty (±)
// of this part, in ns. ok is false if there are too few runs to know the uncertainty.
func (u *Untimed) Waits() (ns, off int64, ok bool) {
	wait, split := u.CPU().NS()
	wall, ok1 := u.WallOff.NS()
	gpu, ok2 := u.GPUOff.NS()
	return wait, Whole(math.Hypot(float64(wall), float64(gpu))),
		split && ok1 && ok2 && u.N >= trace.FewestWithin
}

// Time returns the median as a time.
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

// Mode returns how the steps followed each other: "stepped" or "pipelined".
func (u *Untimed) Mode() string { return (&trace.Step{Pipelined: u.Pipelined}).Mode() }

// Waiting divides a step's time, from its start to the end of the wait, by what the GPU did. Busy and Idle
// are known only if dispatches or blocks were timed. Instants have an error of Clock.ErrorNS.
type Waiting struct {
	Begin  trace.Time // from the start of the step to its submit
	ToTick trace.Time // from the submit to the GPU's first tick
	Span   trace.Time // from the first tick to the last; the sum of Busy and Idle
	Busy   trace.Time // the timed part of Span
	Idle   trace.Time // Span - Busy
	ToDone trace.Time // from the last tick until the host was notified
}

// Waiting divides the time of a step. No time in the result is measured if the step was not timed.
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
