package analyze

import (
	"fmt"
	"math"
	"slices"

	"gpuscope/trace"
)

// Untimed is how a step runs with at most two timestamps around it. Timing every dispatch makes a step about
// three times as long, so the speed of a step and its bound are known only from untimed runs.
type Untimed struct {
	Wall   trace.Time // whole, until its token is known
	Before trace.Time // from its begin to the GPU's first tick
	GPU    trace.Time // from the first tick to the last
	After  trace.Time // from the last tick on
	N      int        // runs that these are medians of
	// WallOff and GPUOff are what Wall and GPU may be off by; not known of few runs.
	WallOff, GPUOff trace.Time
	// Pipelined reports that these were sent each before the one before it was read; what is run again is
	// not.
	Pipelined bool
	// From says where they were measured, where that was not in the step itself: "s126 ×8".
	From string
	// Cost is what timing every dispatch adds to the wall time there: "+260%".
	Cost string
}

// Known reports whether anything is.
func (u *Untimed) Known() bool { return Measured(u.Wall) || Measured(u.GPU) }

// Split reports whether it is known how much of the wall time the GPU's is.
func (u *Untimed) Split() bool { return Measured(u.CPU()) }

// CPU is the part of the wall time in which the GPU has nothing of the step to do.
func (u *Untimed) CPU() trace.Time { return Minus(u.Wall, u.GPU) }

// Untimed is a step as it runs untimed: as it ran, where no more than it as a whole was timed, else as it was
// repeated so. Of a step of which neither is known nothing is: another step takes another time.
func (x *Index) Untimed(step int) Untimed {
	s := &x.Trace.Steps[step]
	if TimedWhole(s) {
		return untimedItself(s)
	}
	return x.UntimedAgain(s)
}

// UntimedAgain is what a step takes when it is run again untimed, by the observer or for its costs: by one of
// them, for what the GPU takes in one measurement is no part of what the step takes in another.
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

// inRounds is what a step takes with nothing left out in the rounds of its costs.
func inRounds(s *trace.Step) Untimed {
	w := s.Whole
	u := Untimed{
		GPU: trace.Measured(w.NS), GPUOff: w.OffNS, WallOff: w.WallOff, N: w.N,
		From: fmt.Sprintf("s%d ×%d", s.Index, w.N),
	}
	if ns, ok := w.WallNS.NS(); ok { // without what a step does before its first command and after it
		u.Wall = trace.Measured(Add(ns, sum(s.CPU.ResizeNS, s.CPU.UploadNS, s.CPU.SampleNS)))
	}
	if s.Timing == trace.TimingDispatch && !s.Cold {
		u.Cost = added(s.CPU.TotalNS, u.Wall)
	}
	u.Rest()
	return u
}

// added is what a timed wall time is more than an untimed one: "+260%"; "" where one was not measured.
func added(timed, untimed trace.Time) string {
	more, ok := Minus(timed, untimed).NS()
	if ns, _ := untimed.NS(); ok && ns > 0 {
		return fmt.Sprintf("%+.0f%%", 100*float64(more)/float64(ns))
	}
	return ""
}

// sum of times; what was not measured counts as nothing.
func sum(times ...trace.Time) int64 {
	var all int64
	for _, t := range times {
		ns, _ := t.NS()
		all = Add(all, ns)
	}
	return all
}

// untimedItself are a step's own times. Its first tick cannot have come before its submit, whatever the error
// of the clocks.
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

// Rest is what the wall time has after the GPU's. Where that would be nothing because the GPU took longer in
// other runs than all of these did, on a device that is not steady, the GPU's time is not known; nor is what
// came before it where that would be less than zero, by two clocks.
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

// Observes reports whether what an observer measured is of some steps of the trace: not where it is of
// another.
func (x *Index) Observes(o *trace.Observer, steps []int) bool {
	is := func(step int) bool { return o.Step != nil && x.Trace.Steps[step].Index == *o.Step }
	return slices.ContainsFunc(steps, is) || !slices.ContainsFunc(x.EveryStep(), is)
}

// observed is what an observer measured of its step.
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

// RanUntimed are the steps of a selection that ran untimed and of which the wall time is known. That of a
// step that was sent before the one before it was read is another than of a stepped one, so of both they are
// those that are more.
func (x *Index) RanUntimed(selection Selection) []int {
	by := map[bool][]int{}
	for _, step := range selection.Steps {
		if s := &x.Trace.Steps[step]; TimedWhole(s) && Measured(s.CPU.TotalNS) {
			by[s.Pipelined] = append(by[s.Pipelined], step)
		}
	}
	return by[len(by[true]) > len(by[false])]
}

// UntimedOf is what is known of the steps of a selection untimed: medians of those that ran so, in one mode;
// where none did, what is known of the last of them that was run again so.
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
	if len(spans) == len(steps) { // a median of fewer is of other steps
		u.GPU, u.GPUOff = medianOff(spans)
	}
	if len(befores) == len(steps) {
		u.Before = StatsOf(befores).Time()
	}
	u.Rest()
	return u
}

// medianOff is the median of some times, at least one, and what it may be off by.
func medianOff(ns []int64) (median, off trace.Time) {
	median = StatsOf(ns).Time()
	is, _ := median.NS()
	return median, trace.OffBy(ns, is)
}

// Waits is the part of the wall time in which the GPU has nothing of the step to do, and what that may be off
// by. Few runs do not tell that: then ok is false.
func (u *Untimed) Waits() (ns, off int64, ok bool) {
	wait, split := u.CPU().NS()
	wall, ok1 := u.WallOff.NS()
	gpu, ok2 := u.GPUOff.NS()
	return wait, Whole(math.Hypot(float64(wall), float64(gpu))),
		split && ok1 && ok2 && u.N >= trace.FewestWithin
}

// Time is the median.
func (s Stats) Time() trace.Time {
	if !s.Measured() {
		return trace.Time{}
	}
	return trace.Measured(Whole(s.Median))
}

// TokensPerS is the rate of steps that take so many tokens each; 0 where the wall time is not known.
func (u *Untimed) TokensPerS(tokens int) float64 {
	if ns, ok := u.Wall.NS(); ok && ns > 0 {
		return float64(tokens) * 1e9 / float64(ns)
	}
	return 0
}

// Mode is how the steps followed each other, in words.
func (u *Untimed) Mode() string { return (&trace.Step{Pipelined: u.Pipelined}).Mode() }

// Waiting is the time from a step's first submit to the end of the wait for it, by what the GPU did. Busy and
// Gaps are known where dispatches or blocks were timed. Instants are known to Clock.ErrorNS.
type Waiting struct {
	Begin  trace.Time // from the step's begin to its submit
	ToTick trace.Time // from the submit to the GPU's first tick
	Span   trace.Time // from the first tick to the last, which is Busy and Gaps
	Busy   trace.Time // what was timed in it
	Idle   trace.Time // the rest of it
	ToDone trace.Time // from the last tick until the host knew
}

// Waiting computes it for a step; nothing in it is measured where the step was not timed.
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

// EveryStep are the indices of all steps.
func (x *Index) EveryStep() []int {
	steps := make([]int, len(x.Trace.Steps))
	for i := range steps {
		steps[i] = i
	}
	return steps
}

// WarmAgain is what a step took that was run again, untimed and when the device was at its clocks.
func WarmAgain(s *trace.Step) trace.Time {
	if s.Whole == nil {
		return trace.Time{}
	}
	return s.Whole.WallNS
}
