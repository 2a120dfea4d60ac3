package step

import (
	"fmt"
	"slices"
	"strings"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/table"
	"gpuscope/tui/widget"
)

// strip draws the times of a run's steps as columns. If there are more steps than columns, a column covers
// several steps. The lanes below the columns show events and marks.
type strip struct {
	steps  []trace.Step
	Per    int // number of steps in a column
	Median []float64
	Most   []float64
	scale  float64         // time at the top, in ns
	events []analyze.Event // sorted by step
	Signs  []string
	first  []analyze.Event // for each column, the event that its sign shows
}

// eventSigns maps kinds of events to the signs in their lane. If a column has several events, the first
// kind in this list is shown.
var eventSigns = []struct{ kind, sign, word string }{
	{"breakpoint", "B", "breakpoint"},
	{analyze.OutlierEvent, widget.MarkWarn, "outlier"},
	{analyze.RouteEvent, "◆", "grid or route"},
	{analyze.GridEvent, "◆", "grid or route"},
	{analyze.ShapeEvent, "M", "tokens"},
	{"set_back", "←", "stepped back"},
	{"repeat", "R", "repeated"},
	{"prompt", "P", "text"},
	{"edit", "P", "text"},
	{"rewritten", "P", "text"},
	{"plan", "P", "text"},
	{"reset", "P", "text"},
	{analyze.ColdEvent, "c", "cold"},
	{"", "•", "other"}, // any other kind
}

// signOf returns the index in eventSigns of a kind of event.
func signOf(kind string) int {
	for i := range eventSigns {
		if eventSigns[i].kind == kind {
			return i
		}
	}
	return len(eventSigns) - 1
}

// NewStrip fits the steps of a run into the given number of columns. `bar` returns the time of a step in ns.
func NewStrip(steps []trace.Step, bar func(*trace.Step) float64, events []analyze.Event, scale float64,
	columns int,
) *strip {
	per := max(1, (len(steps)+columns-1)/max(1, columns))
	p := &strip{steps: steps, events: events, scale: scale, Per: per}
	n := (len(steps) + p.Per - 1) / p.Per
	p.Median, p.Most = make([]float64, n), make([]float64, n)
	p.Signs, p.first = slices.Repeat([]string{" "}, n), make([]analyze.Event, n)
	walls := make([]float64, 0, p.Per)
	for c := range n {
		walls = walls[:0]
		for i := c * p.Per; i < min(len(steps), (c+1)*p.Per); i++ {
			walls = append(walls, bar(&steps[i]))
		}
		slices.Sort(walls)
		p.Median[c], p.Most[c] = walls[(len(walls)-1)/2], walls[len(walls)-1]
	}
	rank := make([]int, n)
	for i := range rank {
		rank[i] = len(eventSigns)
	}
	for _, e := range events {
		c := e.Step / p.Per
		if r := signOf(e.Kind); e.Step < len(steps) && r < rank[c] {
			rank[c], p.Signs[c], p.first[c] = r, eventSigns[r].sign, e
		}
	}
	return p
}

// Column returns the column of a step.
func (p *strip) Column(step int) int { return step / p.Per }

// Chart draws the times in h rows. A column is filled up to the median of its steps, and lighter up to the
// longest step. Times above the scale are cut off and marked with an arrow.
func (p *strip) Chart(t *widget.Theme, g widget.Glyphs, h int) []string {
	share := func(list []float64) []float64 {
		out := make([]float64, len(list))
		for i, ns := range list {
			if p.scale > 0 {
				out[i] = min(1, ns/p.scale)
			}
		}
		return out
	}
	prefill := func(c int) bool { return p.steps[c*p.Per].Phase == trace.Prefill }
	light := g.ColumnChart(share(p.Most), h, func(int) bool { return false })
	rows := g.ColumnChart(share(p.Median), h, prefill)
	var tops strings.Builder
	cutOff := false
	for _, ns := range p.Most {
		if ns > p.scale && p.scale > 0 {
			cutOff = true
			tops.WriteString("↑")
		} else {
			tops.WriteString(" ")
		}
	}
	lines := make([]string, 0, h)
	for r, row := range rows {
		label := ""
		switch {
		case r == 0:
			label = table.Millis(int64(p.scale), p.scale > 0)
		case r == h-1 && p.scale > 0:
			label = "0"
		}
		if p.Per > 1 {
			row = over(strings.Map(func(s rune) rune {
				if s == ' ' {
					return s
				}
				return '░'
			}, light[r]), row)
		}
		if r == 0 && cutOff {
			row = over(row, tops.String())
		}
		lines = append(lines, t.Put(widget.Dim, widget.FitLeft(label,
			widget.Axis-1)+" "+widget.MarkBar)+t.Put(widget.GraphA, row))
	}
	return lines
}

// over draws `top` over a row of the same width: characters of `top` other than blanks replace those of the
// row.
func over(row, top string) string {
	under, signs := []rune(row), []rune(top)
	for i := range signs {
		if signs[i] != ' ' && i < len(under) {
			under[i] = signs[i]
		}
	}
	return string(under)
}

// lane returns a line below the chart: its name on the left, and the words on the right if they fit.
func (p *strip) lane(name, row, words string, w int) (line string, fits bool) {
	line = widget.FitLeft(name, widget.Axis-1) + " " + widget.MarkBar + row
	if widget.Width(line)+3+widget.Width(words) > w {
		return line, false
	}
	return strings.TrimRight(line+"   "+words, " "), true
}

// Legend explains the signs in use, one string for each sign.
func (p *strip) Legend() []string {
	var parts []string
	if p.Per > 1 {
		parts = append(parts, fmt.Sprintf("one column is %s: █ median ░ longest", widget.Plural(p.Per,
			"step")))
	}
	if slices.ContainsFunc(p.Most, func(ns float64) bool { return ns > p.scale }) {
		parts = append(parts, "↑ above the chart")
	}
	for i, s := range eventSigns {
		if slices.Contains(p.Signs, s.sign) && (i == 0 || eventSigns[i-1].word != s.word) {
			parts = append(parts, s.sign+" "+s.word)
		}
	}
	return parts
}

// Cursor returns the line that marks the shown step and the baseline step.
func (p *strip) Cursor(shown, base int) string {
	row := slices.Repeat([]string{" "}, len(p.Median))
	if base >= 0 && base < len(p.steps) {
		row[p.Column(base)] = "b"
	}
	if shown < len(p.steps) {
		row[p.Column(shown)] = "▲"
	}
	return strings.Join(row, "")
}

// Marked returns the lane of the range that the user marked.
func (p *strip) Marked(from, to int) string {
	row := slices.Repeat([]string{" "}, len(p.Median))
	a, b := p.Column(from), min(p.Column(to), len(row)-1)
	for c := a; c <= b; c++ {
		row[c] = widget.MarkRule
	}
	row[a] = "├"
	if b > a {
		row[b] = "┤"
	}
	label := fmt.Sprintf(" s%d–s%d ", p.steps[from].Index, p.steps[to].Index)
	if n := widget.Width(label); b-a-1 >= n {
		at := a + 1 + (b-a-1-n)/2
		for i, r := range []rune(label) {
			row[at+i] = string(r)
		}
	}
	return strings.Join(row, "")
}

// Said describes the event of the shown step, else an event in the column of the shown step, else the next
// event of the run.
func (p *strip) Said(shown int) string {
	from := p.Column(shown)
	for c := from; c < len(p.first); c++ {
		e := p.first[c]
		if c == from {
			e = p.at(shown, e)
		}
		if e.Kind != "" {
			s := &p.steps[e.Step]
			sign := eventSigns[signOf(e.Kind)].sign
			text := fmt.Sprintf("%s s%d pos %d: %s", sign, s.Index, s.Position, e.Text)
			if s.Phase == trace.Execute {
				text = fmt.Sprintf("%s s%d: %s", sign, s.Index, e.Text)
			}
			if c > from {
				text = "next " + text
			}
			return text
		}
	}
	return ""
}

// at returns the most important event among e and the events of a step.
func (p *strip) at(step int, e analyze.Event) analyze.Event {
	i, _ := slices.BinarySearchFunc(p.events, step,
		func(e analyze.Event, step int) int { return e.Step - step })
	for ; i < len(p.events) && p.events[i].Step == step; i++ {
		if own := p.events[i]; e.Step != step || signOf(own.Kind) < signOf(e.Kind) {
			e = own
		}
	}
	return e
}
