package report

import (
	"fmt"
	"strings"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/table"
)

// notMeasured is the title line of steps that were planned but not run. Other steps have a line with their
// times.
var notMeasured = table.Line{Segments: []table.Segment{{
	Rank: 0, Text: "planned without a device: nothing was timed", Short: "not measured",
}}}

// TimesLine returns the time of the selected steps in at most three groups: the whole step, the GPU's part of
// it, and what timing adds. For several steps, the times are medians. If no selected step has untimed times,
// the line shows the times of the timed steps and says so.
func TimesLine(x *analyze.Index, selection analyze.Selection) table.Line {
	switch {
	case x.Trace.Device.None():
		return notMeasured
	case x.Trace.Engine != "":
		return importedTimes(x, selection)
	}
	_, one := selection.One()
	u := x.UntimedOf(selection)
	if !u.Known() {
		return grouped(timedParts(x, selection)...)
	}
	var parts []table.Segment
	if analyze.Measured(u.Wall) {
		parts = append(parts, table.Segment{Text: "step " + Millis(u.Wall)})
		step, _, again := strings.Cut(u.From, " ")
		switch {
		case one:
		case again: // the times are those of one of the selected steps
			parts = append(parts, table.Segment{With: true, Text: "(" + step + ")"})
		case u.N < len(selection.Steps):
			parts = append(parts, table.Segment{
				With: true, Text: fmt.Sprintf("(%d of %d steps)", u.N, len(selection.Steps)),
			})
			fallthrough
		default:
			spread := strings.TrimSpace(rangeOf(x, selection))
			parts = append(parts, table.Segment{Rank: 5, With: true, Text: spread})
		}
	}
	parts = append(parts, gpuPart(&u))
	if u.Cost != "" {
		parts = append(parts, table.Segment{Rank: 2, Text: addedText(u.Cost)})
	}
	return grouped(parts...)
}

// grouped returns a line whose segments are separated by bars.
func grouped(parts ...table.Segment) table.Line {
	line := table.Title(parts...)
	line.Separator = " │ "
	return line
}

// gpuPart returns the segment with the GPU time of an untimed step and the rest of its time, in which the GPU
// is idle. It is empty if the GPU time is not known.
func gpuPart(u *analyze.Untimed) table.Segment {
	if !analyze.Measured(u.GPU) {
		return table.Segment{}
	}
	part := table.Segment{Rank: 1, Text: "GPU " + Millis(u.GPU)}
	if Divided(u) {
		part.Short = part.Text
		part.Text += ", idle " + Millis(u.CPU())
	}
	return part
}

// TimingAdds begins the title segment that says what timing adds to a step.
const TimingAdds = "timing adds "

// addedText says how much longer a step takes if it is timed. `by` is a signed percentage without a space.
func addedText(by string) string {
	by = strings.TrimSuffix(by, "%") + " %"
	if more, ok := strings.CutPrefix(by, "+"); ok {
		return TimingAdds + more
	}
	return "timing " + by
}

// timedParts returns the times of steps that were timed and have no untimed times.
func timedParts(x *analyze.Index, selection analyze.Selection) []table.Segment {
	median := func(of func(*trace.Step) trace.Time) trace.Time {
		var times []int64
		for _, step := range selection.Steps {
			if ns, ok := of(&x.Trace.Steps[step]).NS(); ok {
				times = append(times, ns)
			}
		}
		spread := analyze.StatsOf(times)
		return spread.Time()
	}
	span := func(s *trace.Step) trace.Time { return analyze.GPUOf(s).SpanNS }
	wall, gpu := median(func(s *trace.Step) trace.Time { return s.CPU.TotalNS }), median(span)
	parts := []table.Segment{{Text: "step " + Millis(wall)}}
	if analyze.Measured(wall) {
		parts[0].Text = "timed step " + Millis(wall)
	}
	if analyze.Measured(gpu) {
		part := table.Segment{Rank: 1, Text: "GPU " + Millis(gpu)}
		idle := median(func(s *trace.Step) trace.Time { return analyze.Minus(s.CPU.TotalNS, span(s)) })
		if analyze.Measured(idle) {
			part.Short = part.Text
			part.Text += ", idle " + Millis(idle)
		}
		parts = append(parts, part)
	}
	return append(parts, table.Segment{Rank: 2, Text: "untimed time not measured", Short: "untimed –"})
}

// SumParts returns the segments with the sum of the isolated times of the dispatches of the selected steps,
// and the ratio of this sum to the GPU time of the untimed step. If no dispatch was timed, it is the sum of
// the times of the blocks. For several steps, the sum is a median. The result is empty if neither dispatches
// nor blocks were timed.
func SumParts(x *analyze.Index, selection analyze.Selection) []table.Segment {
	var sums, blocks []int64
	repeats := 0
	for _, step := range selection.Steps {
		s := &x.Trace.Steps[step]
		busy, n := x.BusyOf(s)
		if ns, ok := busy.NS(); ok {
			sums = append(sums, ns)
			repeats = max(repeats, n)
		}
		if ns, ok := analyze.BlocksNS(s).NS(); ok {
			blocks = append(blocks, ns)
		}
	}
	switch {
	case len(sums) == 0 && len(blocks) == 0:
		return nil
	case len(sums) == 0:
		return []table.Segment{{Rank: 4, Text: "Σblocks " + Millis(analyze.StatsOf(blocks).Time())}}
	}
	spread := analyze.StatsOf(sums)
	text := analyze.SumName + " " + Millis(spread.Time()) + " isolated"
	ns, _ := spread.Time().NS()
	u := x.UntimedOf(selection)
	if span, ok := u.GPU.NS(); ok && span > 0 {
		text += fmt.Sprintf(" (%.1f×)", float64(ns)/float64(span))
	}
	parts := []table.Segment{{Rank: 4, Text: text}}
	if _, one := selection.One(); one && repeats > 0 {
		parts = append(parts, table.Segment{Rank: 5, With: true, Text: fmt.Sprintf("(medians of %d)",
			repeats)})
	}
	return parts
}

// Millis formats a time in ms.
func Millis(t trace.Time) string { return table.Millis(t.NS()) }
