// Package log is the view Log: all messages.
package log

import (
	"context"
	"fmt"
	"strings"

	"gpuscope/internal/printable"
	"gpuscope/trace/table"
	"gpuscope/tui/command"
	"gpuscope/tui/view"
	"gpuscope/tui/widget"
)

// Page is view 0, the log of all messages. It follows the end of the log unless the user has scrolled
// up.
type Page struct {
	view.Basics
	log    *widget.Log
	wanted string // filter that the user typed
	text   widget.TextPane
	task   widget.Task[logKey, logText]
}

// logKey identifies the contents of the log page.
type logKey struct {
	version, width int
	filter         string
}

// logText holds the wrapped and filtered log.
type logText struct {
	lines  []string
	of     []int // index of the log entry of each line
	nth    []int // for each line, the number of its entry among the found entries, from 1
	all    int   // number of log entries
	filter string
	found  int // number of entries that match the filter
}

// New returns the view Log, which shows the messages of l.
func New(l *widget.Log) *Page {
	return &Page{log: l, text: widget.TextPane{Tail: true}}
}

func (p *Page) Load(j *widget.Jobs, _ view.Snapshot, w int) {
	lines, version := p.log.Snapshot()
	key := logKey{version, w - 2, p.wanted}
	p.task.Want(j, key, func(ctx context.Context) (logText, error) { return wrapLog(ctx, lines, key) },
		func(t logText) { p.text.Load(t.lines, t.of) })
}

// wrapLog filters the log and wraps the entries to the width of the screen.
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

// lets reports whether the line s passes the filter.
func lets(filter, s string) bool {
	want, invert := strings.CutPrefix(filter, "!")
	return strings.Contains(strings.ToLower(s), strings.ToLower(want)) != invert || filter == ""
}

func (p *Page) Title(int) []table.Segment {
	t := &p.task.Value
	parts := []table.Segment{{Rank: 0, Text: widget.Plural(t.all, "line")}}
	if t.filter != "" {
		parts = append(parts,
			table.Say(0, "filter %s: %s of %s", t.filter, widget.Count(t.found),
				widget.Plural(t.all, "line")))
	}
	if p.text.Where() != "" { // counts log entries, not wrapped lines
		parts = append(parts, table.Say(1, "%s/%s", widget.Count(t.nth[p.text.Last()]),
			widget.Count(t.found)))
	}
	return parts
}

func (p *Page) Render(t *widget.Theme, _ widget.Glyphs, w, h int, _ bool) []string {
	if len(p.text.Lines) == 0 {
		none := "No messages yet."
		if p.task.Value.all > 0 {
			none = command.Keyed("No line matches the filter. Press {back out} to clear the filter.")
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

// Move moves up and down only, because the wrapped lines never extend past the right edge.
func (p *Page) Move(m widget.Motion) {
	if m != widget.Left && m != widget.Right {
		p.text.Move(m)
	}
}

func (p *Page) Filter() *view.Filter {
	return &view.Filter{Text: p.wanted, Set: func(s string) { p.wanted = s }}
}

func (p *Page) Actions() []command.Action { return []command.Action{{Name: "filter"}} }

func (p *Page) Look() any { return p.wanted }

func (p *Page) Restore(s any) { p.wanted = s.(string) }

func (p *Page) Copied() string { return strings.Join(p.text.Lines, "\n") }
