package inspect

import (
	"fmt"
	"slices"

	"gpuscope/trace"
	"gpuscope/trace/table"
)

// StepSummary is what a step cost and where its wall time went. What was not measured says so.
type StepSummary struct {
	Step    *trace.Step
	index   *Index
	at      int  // of Step in the trace
	Planned bool // there was no device, and nothing below was measured
	// Untimed is the step as it runs when no dispatch in it is timed, and what bounds it then.
	Untimed    Untimed
	FewSamples bool    // more untimed runs would say more of what bounds the step
	TokensPerS float64 // untimed; 0 where that is not known

	// As it was recorded.
	Wall       trace.Time // CPU, whole
	Busy       trace.Time // Σgpu: each dispatch timed alone, of repeats the median
	Repeats    int        // that Busy is of; 0 where it is of the one run
	Span       trace.Time // GPU, first begin to last end
	Gaps       trace.Time // Span less what was timed in it, in that run
	Idle       trace.Time // Wall - Span
	Dispatches int
	Levels     int        // 0: not recorded
	Timing     trace.Time // modelled: what timing added to Busy, by the dispatch
	Work       trace.Time // modelled: Busy - Timing
	Compiled   trace.Time // compiling pipelines
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
	return trace.Measured(add(a, -b))
}

// plus is a time with more added; what was not measured counts as nothing.
func plus(t trace.Time, ns int64) trace.Time {
	before, _ := t.NS()
	return trace.Measured(add(before, ns))
}

// Summary computes the summary of a step.
func (x *Index) Summary(step int) *StepSummary {
	t := x.Trace
	s := &t.Steps[step]
	gpu := gpuOf(s)
	r := &StepSummary{
		Step: s, index: x, at: step, Planned: t.Device.None(), Untimed: x.Untimed(step), Wall: s.CPU.TotalNS, Span: gpu.SpanNS,
		Gaps: minus(gpu.SpanNS, gpu.BusyNS), Idle: minus(s.CPU.TotalNS, gpu.SpanNS),
		Dispatches: len(s.Dispatches), Levels: len(x.levelStarts(step)),
	}
	r.Busy, r.Repeats = x.busyOf(s)
	r.Compiled = compileTime(s)
	if per := t.Device.TimingNS(); s.Timing != "block" && measured(r.Busy) && per > 0 {
		r.Timing = trace.Measured(whole(per * float64(len(s.Dispatches))))
		r.Work = minus(r.Busy, r.Timing)
	}
	r.TokensPerS = r.Untimed.tokensPerS(len(s.Tokens))
	r.FewSamples = x.fewSamples(s, &r.Untimed)
	return r
}

// busyOf is the sum of a step's dispatches, each timed alone: of those that were repeated the medians, and
// how many repeats all of them have. Header, tables and views all say this sum.
func (x *Index) busyOf(s *trace.Step) (busy trace.Time, repeats int) {
	if !repeated(s) {
		return gpuOf(s).BusyNS, 0
	}
	made, there := x.graph.sums.Load(&s.Dispatches[0])
	if !there {
		made = sumOfMedians(s)
		x.graph.sums.Store(&s.Dispatches[0], made)
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
			return stepSum{gpuOf(s).BusyNS, 0}
		}
		if i == 0 || n < repeats {
			repeats = n
		}
		sum += timeOf(d).Median
	}
	return stepSum{trace.Measured(whole(sum)), repeats}
}

// tokensPerS is how many tokens went into a step a second, at the level at which it was timed; 0 where its
// wall time was not measured.
func tokensPerS(s *trace.Step) float64 {
	u := Untimed{Wall: s.CPU.TotalNS}
	return u.tokensPerS(len(s.Tokens))
}

// notMeasured is the line of what steps took that were planned and did not run.
var notMeasured = table.Line{Parts: []table.Part{{
	Rank: 0, Text: "planned without a device: not measured", Short: "not measured",
}}}

// Title is the line on which the untimed step, the sum of what was timed alone, wall and span stand together.
// The untimed step, and how many times as long timing makes it, are lost last where there is no room. The
// first time has the unit.
func (r *StepSummary) Title() table.Line {
	if r.Planned {
		return notMeasured
	}
	parts := r.Untimed.parts()
	alone := timedAlone(r.Step)
	unit := len(parts) > 0
	ms := func(t trace.Time) string {
		if unit || !measured(t) {
			return table.MillisBare(t.NS())
		}
		unit = true
		return table.Millis(t.NS())
	}
	if alone {
		parts = append(parts, r.alone(ms)...)
	} else if r.Step.Timing == "block" {
		parts = append(parts, table.Part{Rank: 0, Text: "Σblocks " + ms(r.Busy)})
	}
	switch {
	case untimed(r.Step):
		return table.Line{Separator: " │ ", Parts: parts}
	case r.Repeats > 0:
		return table.Line{Separator: " │ ", Parts: append(parts, r.first(ms))}
	}
	return table.Line{Separator: " │ ", Parts: append(parts,
		table.Part{Rank: 1, Text: "wall " + ms(r.Wall) + " timed"},
		table.Part{Rank: 3, Text: "gaps " + ms(r.Gaps)},
		table.Part{Rank: 2, Text: "span " + ms(r.Span)},
		table.Part{Rank: 5, Text: "GPU idle " + ms(r.Idle)})}
}

// sumName is the name of the sum of dispatches, each timed alone.
const sumName = "Σgpu"

// timesAlone says how many times the untimed span a sum is, and that it is of dispatches timed alone.
func timesAlone(sum, gpu trace.Time) []table.Part {
	parts := []table.Part{{Rank: 2, With: true, Text: "timed alone"}}
	ns, ok := sum.NS()
	span, known := gpu.NS()
	if !ok || !known || span <= 0 {
		return parts
	}
	times := fmt.Sprintf("(%.1f×)", float64(ns)/float64(span))
	return append([]table.Part{{Rank: 0, With: true, Text: times}}, parts...)
}

// alone says what the dispatches add up to, each timed alone.
func (r *StepSummary) alone(ms func(trace.Time) string) []table.Part {
	parts := append([]table.Part{{Rank: 0, Text: sumName + " " + ms(r.Busy)}},
		timesAlone(r.Busy, r.Untimed.GPU)...)
	if r.Repeats > 0 {
		parts = append(parts, table.Part{
			Rank: 3, With: true, Text: fmt.Sprintf("(medians of %d)", r.Repeats),
		})
	}
	if measured(r.Timing) {
		parts = append(parts, table.Part{Rank: 4, With: true, Text: fmt.Sprintf("= ~%s work + ~%s timing",
			ms(r.Work), ms(r.Timing))})
	}
	return parts
}

// firstOf says which run the times of a step are of that are not its dispatches', where it was repeated so
// often: of repeats there are no others. It is "" where all are of one run, or the step was timed as a whole.
func firstOf(s *trace.Step, repeats int) string {
	if repeats == 0 || untimed(s) {
		return ""
	}
	return "first of " + table.Plural(repeats+1, "run")
}

// first says the times that are of the first run alone, all of one run, so that they add up.
func (r *StepSummary) first(ms func(trace.Time) string) table.Part {
	name := sumName
	if r.Step.Timing == "block" {
		name = "Σblocks"
	}
	short := fmt.Sprintf("%s: wall %s timed", firstOf(r.Step, r.Repeats), ms(r.Wall))
	return table.Part{
		Rank: 2, Short: short, Text: fmt.Sprintf("%s, %s %s + gaps %s = span %s, GPU idle %s", short, name,
			ms(gpuOf(r.Step).BusyNS), ms(r.Gaps), ms(r.Span), ms(r.Idle)),
	}
}

// CostLine is the title's line of what the steps of a scope cost: of several, medians with their range. Where
// the untimed step is one that was run again, what is behind it says that it is of all.
func (x *Index) CostLine(scope Scope) table.Line {
	if x.Trace.Device.None() {
		return notMeasured
	}
	if step, one := scope.One(); one {
		return x.Summary(step).Title()
	}
	line := table.Line{Separator: " │ "}
	untimed := x.UntimedOf(scope)
	closely := slices.ContainsFunc(scope.Steps, func(step int) bool {
		busy, _ := x.busyOf(&x.Trace.Steps[step])
		return measured(busy)
	})
	line.Parts = untimed.parts()
	all := ""
	if untimed.From != "" {
		all = table.Plural(len(scope.Steps), "step") + ": "
	}
	for i, c := range []struct {
		name string
		of   func(*trace.Step) trace.Time
	}{
		{sumName, func(s *trace.Step) trace.Time { busy, _ := x.busyOf(s); return busy }},
		{"wall", func(s *trace.Step) trace.Time { return s.CPU.TotalNS }},
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
		if untimed.Known() && (!closely || !spread.Measured()) {
			continue
		}
		took := table.Millis(whole(spread.Median), spread.Measured())
		part := table.Part{Rank: i, Text: all + c.name + " " + took}
		if untimed.Known() { // which has the unit
			part.Short = c.name + " " + table.MillisBare(whole(spread.Median), spread.Measured())
		}
		line.Parts = append(line.Parts, part)
		if all = ""; c.name == sumName {
			line.Parts = append(line.Parts, timesAlone(spread.time(), untimed.GPU)...)
		}
		if spread.N > 1 {
			line.Parts = append(line.Parts, table.Part{Rank: 5 + i, With: true, Text: fmt.Sprintf("(%s–%s)",
				table.MillisBare(whole(spread.Min), true), table.MillisBare(whole(spread.Max), true))})
		}
	}
	return line
}

// millis writes a time in ms.
func millis(t trace.Time) string { return table.Millis(t.NS()) }
