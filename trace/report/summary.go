package report

import (
	"fmt"
	"slices"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/table"
)

// notMeasured is the title line of steps that were planned but not run. Other steps have a line with their
// times.
var notMeasured = table.Line{Segments: []table.Segment{{
	Rank: 0, Text: "planned without a device: nothing was timed", Short: "not measured",
}}}

// SummaryTitle returns the title line with the untimed step, the sum of isolated times, the wall time and the
// span. If there is not enough room, the untimed step and the overhead factor of timing are removed last.
// Only the first time on the line shows its unit.
func SummaryTitle(r *analyze.StepSummary) table.Line {
	if r.Planned {
		return notMeasured
	}
	parts := untimedParts(&r.Untimed)
	alone := analyze.EachTimed(r.Step)
	unit := len(parts) > 0
	ms := func(t trace.Time) string {
		if unit || !analyze.Measured(t) {
			return table.MillisBare(t.NS())
		}
		unit = true
		return table.Millis(t.NS())
	}
	if alone {
		parts = append(parts, aloneParts(r, ms)...)
	} else if r.Step.Timing == trace.TimingBlock {
		parts = append(parts, table.Segment{Rank: 0, Text: "Σblocks " + ms(r.Busy)})
	}
	switch {
	case r.Index.Trace.Engine != "":
		return table.Line{Separator: " │ ", Segments: append(parts, StatedStep(r)...)}
	case analyze.TimedWhole(r.Step):
		return table.Line{Separator: " │ ", Segments: parts}
	case r.Repeats > 0:
		return table.Line{Separator: " │ ", Segments: append(parts, first(r, ms))}
	}
	return table.Line{Separator: " │ ", Segments: append(parts,
		table.Segment{Rank: 1, Text: "wall " + ms(r.Wall) + " timed"},
		table.Segment{Rank: 2, Text: "first to last dispatch " + ms(r.Span)},
		table.Segment{Rank: 3, Text: "idle between " + ms(r.IdleInSpan)},
		table.Segment{Rank: 5, Text: "idle outside " + ms(r.Idle)})}
}

// timesAlone returns the segments to show after a sum of isolated times: the ratio of the sum to the
// untimed GPU span, and the word "isolated".
func timesAlone(sum, gpu trace.Time) []table.Segment {
	parts := []table.Segment{{Rank: 2, With: true, Text: "isolated"}}
	ns, ok := sum.NS()
	span, known := gpu.NS()
	if !ok || !known || span <= 0 {
		return parts
	}
	times := fmt.Sprintf("(%.1f×)", float64(ns)/float64(span))
	return append([]table.Segment{{Rank: 0, With: true, Text: times}}, parts...)
}

// aloneParts returns the segments for the sum of the dispatches, each timed in isolation.
func aloneParts(r *analyze.StepSummary, ms func(trace.Time) string) []table.Segment {
	parts := append([]table.Segment{{Rank: 0, Text: analyze.SumName + " " + ms(r.Busy)}},
		timesAlone(r.Busy, r.Untimed.GPU)...)
	if r.Repeats > 0 {
		parts = append(parts, table.Segment{
			Rank: 3, With: true, Text: fmt.Sprintf("(medians of %d)", r.Repeats),
		})
	}
	if analyze.Measured(r.Timing) {
		parts = append(parts, table.Segment{Rank: 4, With: true, Text: fmt.Sprintf("= ~%s work + ~%s timing",
			ms(r.Work), ms(r.Timing))})
	}
	return parts
}

// firstOf names the first run of a repeated step: "first of 11 runs". The times of dispatches come from the
// repeats, but all other times come from the first run. firstOf returns "" if the step was not repeated, or
// if it was timed as a whole.
func firstOf(s *trace.Step, repeats int) string {
	if repeats == 0 || analyze.TimedWhole(s) {
		return ""
	}
	return "first of " + table.Plural(repeats+1, "run")
}

// first returns the segment with the times of the first run. They all come from one run, so they add up.
func first(r *analyze.StepSummary, ms func(trace.Time) string) table.Segment {
	name := analyze.SumName
	if r.Step.Timing == trace.TimingBlock {
		name = "Σblocks"
	}
	short := fmt.Sprintf("%s: wall %s timed", firstOf(r.Step, r.Repeats), ms(r.Wall))
	return table.Segment{
		Rank: 2, Short: short, Text: fmt.Sprintf("%s, %s %s + idle between %s = first to last dispatch %s, idle outside %s", short,
			name,
			ms(analyze.GPUOf(r.Step).BusyNS), ms(r.IdleInSpan), ms(r.Span), ms(r.Idle)),
	}
}

// CostLine returns the title line with the time of the selected steps. For several steps it shows medians
// with their range. If the untimed time comes from repeats of one step, the other times are preceded by the
// number of steps that they cover.
func CostLine(x *analyze.Index, selection analyze.Selection) table.Line {
	if x.Trace.Device.None() {
		return notMeasured
	}
	if step, one := selection.One(); one {
		return SummaryTitle(x.Summary(step))
	}
	if x.Trace.Engine != "" {
		return importedCost(x, selection)
	}
	line := table.Line{Separator: " │ "}
	untimed := x.UntimedOf(selection)
	closely := slices.ContainsFunc(selection.Steps, func(step int) bool {
		busy, _ := x.BusyOf(&x.Trace.Steps[step])
		return analyze.Measured(busy)
	})
	line.Segments = untimedParts(&untimed)
	if untimed.Known() && untimed.From == "" && untimed.N < len(selection.Steps) {
		line.Segments = append(line.Segments, table.Segment{
			Rank: 0, With: true, Text: fmt.Sprintf("(%d of %d steps)", untimed.N, len(selection.Steps)),
		})
	}
	all := ""
	if untimed.From != "" {
		all = table.Plural(len(selection.Steps), "step") + ": "
	}
	for i, c := range []struct {
		name string
		of   func(*trace.Step) trace.Time
	}{
		{analyze.SumName, func(s *trace.Step) trace.Time { busy, _ := x.BusyOf(s); return busy }},
		{"wall", func(s *trace.Step) trace.Time { return s.CPU.TotalNS }},
		{"first to last dispatch", func(s *trace.Step) trace.Time { return analyze.GPUOf(s).SpanNS }},
		{"idle between", func(s *trace.Step) trace.Time {
			return analyze.Minus(analyze.GPUOf(s).SpanNS, analyze.GPUOf(s).BusyNS)
		}},
		{"idle outside", func(s *trace.Step) trace.Time {
			return analyze.Minus(s.CPU.TotalNS, analyze.GPUOf(s).SpanNS)
		}},
	} {
		var times []int64
		for _, step := range selection.Steps {
			if ns, ok := c.of(&x.Trace.Steps[step]).NS(); ok {
				times = append(times, ns)
			}
		}
		spread := analyze.StatsOf(times)
		if untimed.Known() && (!closely || !spread.Measured()) {
			continue
		}
		took := table.Millis(analyze.Whole(spread.Median), spread.Measured())
		part := table.Segment{Rank: i, Text: all + c.name + " " + took}
		if untimed.Known() { // the untimed time already shows the unit
			part.Short = c.name + " " + table.MillisBare(analyze.Whole(spread.Median), spread.Measured())
		}
		line.Segments = append(line.Segments, part)
		if all = ""; c.name == analyze.SumName {
			line.Segments = append(line.Segments, timesAlone(spread.Time(), untimed.GPU)...)
		}
		if spread.N > 1 {
			line.Segments = append(line.Segments, table.Segment{Rank: 5 + i, With: true, Text: fmt.Sprintf("(%s–%s)",
				table.MillisBare(analyze.Whole(spread.Min),
					true), table.MillisBare(analyze.Whole(spread.Max), true))})
		}
	}
	return line
}

// Millis formats a time in ms.
func Millis(t trace.Time) string { return table.Millis(t.NS()) }
