package view

import (
	"context"
	"fmt"
	"strings"

	"gpuscope/internal/printable"
	"gpuscope/trace/table"
	"gpuscope/tui/command"
	"gpuscope/tui/widget"
)

// logPage is view 0: everything said, compiled, refused. It stays at its end as the log grows, unless
// somebody scrolled up.
type logPage struct {
	Basics
	log    *widget.Log
	wanted string // that is wanted
	text   widget.TextPane
	task   widget.Task[logKey, logText]
}

// logKey is what the lines on the screen depend on.
type logKey struct {
	version, width int
	filter         string
}

// logText is the log as it is shown.
type logText struct {
	lines  []string
	of     []int // by line, which of the log it is a part of,
	nth    []int // and the how manieth of those found
	all    int   // lines of the log
	filter string
	found  int // lines that the filter lets through
}

func newLogPage(_ Host, l *widget.Log) View {
	return &logPage{log: l, text: widget.TextPane{Tail: true}}
}

func (p *logPage) Load(j *widget.Jobs, _ Snapshot, w int) {
	lines, version := p.log.Snapshot()
	key := logKey{version, w - 2, p.wanted}
	p.task.Want(j, key, func(ctx context.Context) (logText, error) { return wrapLog(ctx, lines, key) },
		func(t logText) { p.text.Load(t.lines, t.of) })
}

// wrapLog breaks what is too long for the screen: nothing that was said is cut off.
func wrapLog(ctx context.Context, lines []widget.LogLine, key logKey) (logText, error) {
	t := logText{all: len(lines), filter: key.filter}
	for i, l := range lines {
		if i%100 == 0 && ctx.Err() != nil {
			return t, ctx.Err()
		}
		mark := " "
		switch l.Level {
		case "error":
			mark = widget.MarkFail
		case "warn":
			mark = widget.MarkWarn
		}
		at := "in the trace"
		if !l.At.IsZero() {
			at = l.At.Format("15:04:05.000")
		}
		head := fmt.Sprintf("%s %s %-5s ", at, mark, l.Level)
		text := printable.Clean(l.Text)
		if !lets(key.filter, head+text) {
			continue
		}
		t.found++
		for _, part := range widget.WrapText(text, max(20, key.width-widget.Width(head))) {
			t.lines, t.of, t.nth = append(t.lines, head+part), append(t.of, i), append(t.nth, t.found)
			head = widget.Blank(widget.Width(head))
		}
	}
	return t, nil
}

// lets says whether a filter lets a line through.
func lets(filter, s string) bool {
	want, invert := strings.CutPrefix(filter, "!")
	return strings.Contains(strings.ToLower(s), strings.ToLower(want)) != invert || filter == ""
}

func (p *logPage) Title(int) []table.Segment {
	t := &p.task.Value
	parts := []table.Segment{{Rank: 0, Text: widget.Plural(t.all, "line")}}
	if t.filter != "" {
		parts = append(parts,
			table.Say(0, "filter %s: %s of %s", t.filter, widget.Count(t.found),
				widget.Plural(t.all, "line")))
	}
	if p.text.Where() != "" { // in lines of the log, whatever they are broken into
		parts = append(parts, table.Say(1, "%s/%s", widget.Count(t.nth[p.text.Last()]),
			widget.Count(t.found)))
	}
	return parts
}

func (p *logPage) Render(t *widget.Theme, _ widget.Glyphs, w, h int, _ bool) []string {
	if len(p.text.Lines) == 0 {
		none := "No messages yet."
		if p.task.Value.all > 0 {
			none = command.Keyed("No line matches the filter. {back out} clears it.")
		}
		return []string{"", t.Put(widget.Dim, "  "+none)}
	}
	lines := widget.Indent(p.text.Render(w-2, h))
	for i, l := range lines {
		switch {
		case strings.Contains(l, widget.MarkFail+" error"):
			lines[i] = t.Put(widget.Bad, l)
		case strings.Contains(l, widget.MarkWarn+" warn"):
			lines[i] = t.Put(widget.Warn, l)
		}
	}
	return lines
}

// Move goes up and down: of lines that are broken for the screen nothing stands further right.
func (p *logPage) Move(m widget.Motion) {
	if m != widget.Left && m != widget.Right {
		p.text.Move(m)
	}
}

func (p *logPage) Filter() *filter {
	return &filter{p.wanted, func(s string) { p.wanted = s }}
}

func (p *logPage) Actions() []command.Action { return []command.Action{{Name: "filter"}} }

func (p *logPage) Look() any { return p.wanted }

func (p *logPage) Restore(s any) { p.wanted = s.(string) }

func (p *logPage) Copied() string { return strings.Join(p.text.Lines, "\n") }
