package inspect

import (
	"fmt"

	"gpuscope/trace"
	"gpuscope/trace/table"
)

// StepSummary is what a step cost and where its wall time went. Sums are 0 with Measured false where
// something was not measured.
type StepSummary struct {
	Step       *trace.Step
	Wall       trace.Time // CPU, whole
	Busy       trace.Time // Σgpu: all dispatches
	Span       trace.Time // GPU, first begin to last end
	Gaps       trace.Time // Span - Busy
	Idle       trace.Time // Wall - Span
	Dispatches int
	Levels     int        // 0: not recorded
	Timing     trace.Time // modelled: what timing added to Busy, by the dispatch
	Work       trace.Time // modelled: Busy - Timing
	Untimed    trace.Time // wall of the same decode step with timing off, median
	Timed      trace.Time // the same with timing
	Compiled   trace.Time // compiling pipelines
	Floors     int        // dispatches that take no longer than an empty timed pass
	FloorBusy  trace.Time // their part of Busy
	TokensPerS float64
	Verdict    string // what bounds the step, with the figure that says so; "" where that cannot be said
}

// measured says whether there is a time at all.
func measured(t trace.Time) bool {
	_, ok := t.NS()
	return ok
}

// gpuOf is a step on the GPU's clock; nothing in it is measured where the trace has none.
func gpuOf(s *trace.Step) trace.GPU {
	if s.GPU == nil {
		return trace.GPU{}
	}
	return *s.GPU
}

// minus is a - b where both were measured.
func minus(t, u trace.Time) trace.Time {
	a, ok := t.NS()
	b, both := u.NS()
	if !ok || !both {
		return trace.Time{}
	}
	return trace.Measured(a - b)
}

// plus is a time with more added; what was not measured counts as nothing.
func plus(t trace.Time, ns int64) trace.Time {
	before, _ := t.NS()
	return trace.Measured(before + ns)
}

// Summary computes the summary of a step.
func (x *Index) Summary(step int) *StepSummary {
	t := x.Trace
	s := &t.Steps[step]
	r := &StepSummary{
		Step: s, Wall: s.CPU.TotalNS, Dispatches: len(s.Dispatches),
		Levels: len(x.levelStarts(step)),
	}
	gpu := gpuOf(s)
	r.Busy, r.Span = gpu.BusyNS, gpu.SpanNS
	r.Gaps, r.Idle = minus(r.Span, r.Busy), minus(r.Wall, r.Span)
	for _, c := range s.CPU.Compiled {
		if ns, ok := c.NS.NS(); ok {
			r.Compiled = plus(r.Compiled, ns)
		}
	}
	if s.Timing == "dispatch" {
		if per := t.Device.TimingNS(); measured(r.Busy) && per > 0 {
			r.Timing = trace.Measured(int64(per * float64(len(s.Dispatches))))
			r.Work = minus(r.Busy, r.Timing)
		}
		if o := t.Observer; o != nil && s.Phase == "decode" {
			r.Untimed, r.Timed = o.UntimedNS, o.TimedNS
		}
		for i := range s.Dispatches {
			d := &s.Dispatches[i]
			time := timeOf(d)
			if i > 0 && atFloor(&t.Device, time) {
				r.Floors++
				r.FloorBusy = plus(r.FloorBusy, int64(time.Median))
			}
		}
	}
	r.TokensPerS = tokensPerS(s)
	r.Verdict = r.judge()
	return r
}

// tokensPerS is how many tokens went into a step a second, 0 where its wall time was not measured.
func tokensPerS(s *trace.Step) float64 {
	if ns, ok := s.CPU.TotalNS.NS(); ok && ns > 0 {
		return float64(len(s.Tokens)) * 1e9 / float64(ns)
	}
	return 0
}

// disturbed is how many times as long timing makes a decode step, from which on a step that was timed so says
// nothing of one that was not.
const disturbed = 1.5

// judge is the verdict on the step as it runs untimed; where only the timed step is known it says so, and
// where timing disturbs it too much there is none.
func (r *StepSummary) judge() string {
	v := r.verdict()
	if v == "" || r.Step.Timing != "dispatch" {
		return v
	}
	untimed, ok := r.Untimed.NS()
	timed, both := r.Timed.NS()
	switch {
	case !ok || !both || untimed <= 0:
		return v + " (as timed)"
	case float64(timed) > disturbed*float64(untimed):
		return fmt.Sprintf("no verdict: timing makes a decode step %.1f times as long",
			float64(timed)/float64(untimed))
	}
	return v
}

// verdict: where most of the wall time the GPU was idle, the CPU bounds the step; else, where most of the
// GPU's time went into dispatches at the floor or gaps between dispatches, latency does; else the GPU.
func (r *StepSummary) verdict() string {
	wall, ok1 := r.Wall.NS()
	span, ok2 := r.Span.NS()
	if !ok1 || !ok2 || wall <= 0 || span <= 0 {
		return ""
	}
	if 2*span < wall {
		return fmt.Sprintf("CPU-bound: the GPU is idle for %s of %s", millis(r.Idle), millis(r.Wall))
	}
	gaps, _ := r.Gaps.NS()
	floor, _ := r.FloorBusy.NS()
	if 2*(gaps+floor) > span {
		return fmt.Sprintf("latency-bound: %d dispatches at the floor and the gaps are %s of %s GPU span",
			r.Floors, millis(trace.Measured(gaps+floor)), millis(r.Span))
	}
	return fmt.Sprintf("GPU-bound: GPU span is %s of %s", millis(r.Span), millis(r.Wall))
}

// Title is the line on which wall, span and sum stand together. What timing costs is lost last where there is
// no room. The first time has the unit.
func (r *StepSummary) Title() table.Line {
	unit := false
	ms := func(t trace.Time) string {
		if unit || !measured(t) {
			return table.MillisBare(t.NS())
		}
		unit = true
		return table.Millis(t.NS())
	}
	parts := []table.Part{{Rank: 0, Text: "wall " + ms(r.Wall)}}
	if untimed, ok := r.Untimed.NS(); ok && untimed > 0 {
		timed, _ := r.Timed.NS()
		cost := 100 * float64(timed-untimed) / float64(untimed)
		parts = append(parts, table.Part{
			Rank: 0, With: true, Short: fmt.Sprintf("(timing %+.0f%%)", cost),
			Text: fmt.Sprintf("(decode %s untimed, %s timed, %+.0f%%)", ms(r.Untimed), ms(r.Timed), cost),
		})
	}
	parts = append(parts, table.Part{Rank: 0, Text: "Σgpu " + ms(r.Busy)})
	if measured(r.Timing) {
		parts = append(parts, table.Part{Rank: 4, With: true, Text: fmt.Sprintf("= ~%s work + ~%s timing",
			ms(r.Work), ms(r.Timing))})
	}
	return table.Line{Separator: " │ ", Parts: append(parts,
		table.Part{Rank: 3, Text: "gaps " + ms(r.Gaps)},
		table.Part{Rank: 2, Text: "span " + ms(r.Span)},
		table.Part{Rank: 5, Text: "GPU idle " + ms(r.Idle)})}
}

// costLine is the title's line of what the steps of a scope cost: of several, medians with their range.
func (x *Index) costLine(scope Scope) table.Line {
	if step, one := scope.One(); one {
		return x.Summary(step).Title()
	}
	line := table.Line{Separator: " │ "}
	for i, c := range []struct {
		name string
		of   func(*trace.Step) trace.Time
	}{
		{"wall", func(s *trace.Step) trace.Time { return s.CPU.TotalNS }},
		{"Σgpu", func(s *trace.Step) trace.Time { return gpuOf(s).BusyNS }},
		{"span", func(s *trace.Step) trace.Time { return gpuOf(s).SpanNS }},
		{"gaps", func(s *trace.Step) trace.Time { return minus(gpuOf(s).SpanNS, gpuOf(s).BusyNS) }},
		{"GPU idle", func(s *trace.Step) trace.Time { return minus(s.CPU.TotalNS, gpuOf(s).SpanNS) }},
	} {
		var times []int64
		for _, step := range scope.Steps {
			if ns, ok := c.of(&x.Trace.Steps[step]).NS(); ok {
				times = append(times, ns)
			}
		}
		spread := spreadOf(times)
		line.Parts = append(line.Parts,
			table.Part{Rank: i, Text: c.name + " " + table.Millis(int64(spread.Median), spread.Measured())})
		if spread.N > 1 {
			line.Parts = append(line.Parts, table.Part{Rank: 5 + i, With: true, Text: fmt.Sprintf("(%s–%s)",
				table.MillisBare(int64(spread.Min), true), table.MillisBare(int64(spread.Max), true))})
		}
	}
	return line
}

// millis writes a time in ms.
func millis(t trace.Time) string { return table.Millis(t.NS()) }
