package step

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gpuscope/internal/printable"
	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/tracks"
	"gpuscope/trace/report"
	"gpuscope/trace/table"
	"gpuscope/tui/command"
	"gpuscope/tui/widget"
)

// longTime is the shortest time, in ns, that is written in ms. Shorter times are written in µs.
const longTime = 100e6

// micros formats a time given in ns: in µs, or in ms if the time is at least longTime.
func micros(ns int64) string {
	if ns >= longTime {
		return table.Millis(ns, true)
	}
	return fmt.Sprintf("%d µs", (ns+500)/1000)
}

// Tracks draws what the host and the GPU did in a step, on one time axis of w cells. If `in` is not nil, it
// draws only this part of the GPU track.
func Tracks(t *widget.Theme, x *analyze.Index, step int, r *tracks.Tracks, in *tracks.Span, w int,
	figures bool,
) []string {
	room := w - 6
	if len(r.CPU) == 0 && len(r.GPU) == 0 {
		return []string{" CPU " + table.Unmeasured + " not measured", " GPU " + table.Unmeasured + " not measured"}
	}
	if in != nil {
		return inside(t, x, step, in, room, figures)
	}
	lines := []string{" CPU " + t.Put(widget.GraphB,
		lay(r.CPU, 0, r.End, room, widget.MarkRule, widget.MarkRule))}
	timed := ""
	if inTimed(&x.Trace.Steps[step]) {
		timed = "timed: "
	}
	if figures {
		lines = append(lines, t.Put(widget.Dim, "     "+widget.FirstThatFits(w-6, timed+spans(r.CPU, " · ")+" of "+micros(r.End),
			timed+spans(r.CPU, " · "), timed+LongestSpans(r.CPU, w-6-widget.Width(timed)))))
	}
	switch {
	case len(r.GPU) == 0:
		return append(lines, " GPU "+table.Unmeasured+" not measured")
	default:
		lines = append(lines, " GPU "+t.Put(widget.GraphA, lay(r.GPU, 0, r.End, room, "▒", "░")))
	}
	if figures {
		lines = append(lines, t.Put(widget.Dim, "     "+widget.FirstThatFits(w-6, GPUTexts(r, timed)...)))
	}
	return lines
}

// inTimed reports whether blocks or dispatches inside the step were timed, which makes the step slower.
func inTimed(s *trace.Step) bool {
	return s.Timing == trace.TimingDispatch || s.Timing == trace.TimingBlock
}

// GPUTexts describes the GPU track in several lengths, longest first. The prefix `timed` says how the step
// was timed.
func GPUTexts(r *tracks.Tracks, timed string) []string {
	busy, n, last := int64(0), 0, r.GPU[len(r.GPU)-1].To
	for i := range r.GPU {
		for _, b := range r.GPU[i].Busy {
			busy += b.NS()
		}
		n += len(r.GPU[i].Busy)
	}
	begin := r.GPU[0].From
	where := "waits " + micros(begin)
	if !r.Placed {
		where = "start not measured"
	}
	span := fmt.Sprintf("%s on the GPU", micros(last-begin))
	run := timed
	if report.TrackRun(r) != "" {
		run += report.TrackRun(r) + " · "
	}
	if n == 0 {
		return []string{run + where + " · " + span, run + span}
	}
	parts := fmt.Sprintf("▒ %s busy ░ %s idle", micros(busy), micros(max(0, last-begin-busy)))
	return []string{
		fmt.Sprintf("%s%s · %s: %s · %s", run, where, span, parts, command.Keyed("{zoom in} opens a part")),
		fmt.Sprintf("%s%s · %s: %s", run, where, span, parts), run + span + ": " + parts, run + span,
	}
}

// inside draws the dispatches of one part of the GPU track.
func inside(t *widget.Theme, x *analyze.Index, step int, in *tracks.Span, room int, figures bool) []string {
	list := tracks.Inside(x, step, in)
	name := widget.Cut(fmt.Sprintf(" GPU, %s: %s in %s", printable.Clean(in.Name),
		widget.Plural(in.Dispatches, "dispatch"), micros(in.NS())), room+5)
	lines := []string{t.Put(widget.Strong, name)}
	if len(list) == 0 {
		return append(lines, t.Put(widget.Dim, widget.Cut("     the dispatches of this part were not timed individually",
			room+5)))
	}
	lines = append(lines, "     "+t.Put(widget.GraphA, lay(list, in.From, in.To, room, "▒", "░")))
	if figures {
		for _, l := range Packed(strings.Split(spans(list, " · "), " · "), room, 3) {
			lines = append(lines, t.Put(widget.Dim, "     "+l))
		}
	}
	return lines
}

// LongestSpans returns the names and times of spans. It leaves out the shortest spans until the text fits
// into w cells.
func LongestSpans(list []tracks.Span, w int) string {
	text := spans(list, " ")
	for list = slices.Clone(list); widget.Width(text) > w && len(list) > 1; text = spans(list, " ") + " …" {
		least := 0
		for i := range list {
			if list[i].NS() < list[least].NS() {
				least = i
			}
		}
		list = slices.Delete(list, least, least+1)
	}
	return text
}

// spans returns the names and times of spans, all in the same unit.
func spans(list []tracks.Span, sep string) string {
	var parts []string
	unit := " µs"
	number := func(ns int64) string { return strconv.FormatInt((ns+500)/1000, 10) }
	if slices.ContainsFunc(list, func(s tracks.Span) bool { return s.NS() >= longTime }) {
		unit, number = " ms", func(ns int64) string { return table.MillisBare(ns, true) }
	}
	for i := range list {
		parts = append(parts, list[i].Name+" "+number(list[i].NS()))
	}
	return printable.Clean(strings.Join(parts, sep) + unit)
}

// lay draws the spans between two times in w cells. Each span starts with an edge, followed by the span's
// name and time if they fit. A cell is drawn busy if the GPU worked for at least half of the cell's time, or
// if the busy times of the span are unknown.
func lay(list []tracks.Span, from, to int64, w int, busy, waits string) string {
	if to <= from || w < 2 || len(list) == 0 {
		return ""
	}
	cell := float64(to-from) / float64(w)
	row := make([]string, w)
	for i := range row {
		row[i] = " "
	}
	at := func(ns int64) int { return widget.Clamp(int(float64(ns-from)/cell+0.5), 0, w) }
	for c := at(list[0].From); c < at(list[len(list)-1].To); c++ {
		row[c] = waits // cells between two spans
	}
	worked := make([]float64, w) // fraction of each cell in which the GPU worked
	for i := range list {
		p := &list[i]
		a, b := min(at(p.From), w-1), at(p.To)
		b = max(b, a+1)
		clear(worked[a:b])
		for k := range p.Busy {
			begin, end := float64(p.Busy[k].From-from)/cell, float64(p.Busy[k].To-from)/cell
			cover(worked[a:b], begin-float64(a), end-float64(a))
		}
		for c := a; c < b; c++ {
			if row[c] = busy; p.Busy != nil && worked[c] < 0.5 {
				row[c] = waits
			}
		}
		row[a] = widget.MarkBar
		if b-a < 3 {
			continue // too narrow for a name
		}
		for _, label := range []string{p.Name + " " + micros(p.NS()), p.Name} {
			label = printable.Clean(label)
			if n := widget.Width(label); n < b-a && n == len([]rune(label)) { // one cell per character
				for k, r := range []rune(label) {
					row[a+1+k] = string(r)
				}
				break
			}
		}
	}
	return strings.Join(row, "")
}

// cover adds to each cell the fraction of the cell that is between from and to. Cell c is from c to c+1.
func cover(cells []float64, from, to float64) {
	from, to = min(max(0, from), float64(len(cells))), min(float64(len(cells)), to)
	for c := int(from); c < len(cells) && float64(c) < to; c++ {
		cells[c] += min(to, float64(c+1)) - max(from, float64(c))
	}
}
