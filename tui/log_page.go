package tui

import (
	"fmt"
	"strings"

	"gpuscope/internal/printable"
	"gpuscope/trace/table"
)

// logPage is view 0: everything said, compiled, refused. It stays at its end as the log grows, unless
// somebody scrolled up.
type logPage struct {
	log     *Log
	version int
	filter  string
	text    textPane
	width   int // that the text was wrapped for
	lines   []LogLine
	found   int // lines that the filter lets through
	stale   bool
}

func newLogPage(l *Log) *logPage { return &logPage{log: l, version: -1, text: textPane{tail: true}} }

func (p *logPage) name() string { return "Log" }

func (p *logPage) load(snapshot) {
	lines, version := p.log.snapshot()
	if version == p.version && !p.stale {
		return
	}
	p.lines, p.version, p.stale = lines, version, false
	p.wrap()
}

// wrap breaks what is too long for the screen: nothing that was said is cut off.
func (p *logPage) wrap() {
	p.found = 0
	var out []string
	for _, l := range p.lines {
		mark := " "
		switch l.Level {
		case "error":
			mark = markFail
		case "warn":
			mark = markWarn
		}
		head := fmt.Sprintf("%s %s %-5s ", l.At.Format("15:04:05.000"), mark, l.Level)
		text := printable.Clean(l.Text)
		if !p.shows(head + text) {
			continue
		}
		p.found++
		for _, part := range wrapText(text, max(20, p.width-width(head))) {
			out = append(out, head+part)
			head = blank(width(head))
		}
	}
	p.text.load(out)
}

func (p *logPage) shows(s string) bool {
	want, invert := strings.CutPrefix(p.filter, "!")
	return strings.Contains(strings.ToLower(s), strings.ToLower(want)) != invert || p.filter == ""
}

func (p *logPage) title(int) []table.Part {
	parts := []table.Part{{Rank: 0, Text: plural(len(p.lines), "line")}}
	if p.filter != "" {
		found := fmt.Sprintf("filter %s: %s of %s", p.filter, count(p.found), plural(len(p.lines), "line"))
		parts = append(parts, table.Part{Rank: 0, Text: found})
	}
	if s := p.text.where(); s != "" {
		parts = append(parts, table.Part{Rank: 1, Text: s})
	}
	return parts
}

func (p *logPage) render(t *theme, _ glyphs, w, h int, _ bool) []string {
	if w-2 != p.width {
		p.width = w - 2
		p.wrap()
	}
	if len(p.text.lines) == 0 {
		return []string{"", t.put(dim, "  Nothing was said yet.")}
	}
	lines := indent(p.text.render(w-2, h))
	for i, l := range lines {
		switch {
		case strings.Contains(l, markFail+" error"):
			lines[i] = t.put(bad, l)
		case strings.Contains(l, markWarn+" warn"):
			lines[i] = t.put(warn, l)
		}
	}
	return lines
}

func (p *logPage) move(m motion) { p.text.move(m) }

func (p *logPage) filtered() string { return p.filter }

func (p *logPage) setFilter(s string) { p.filter, p.stale = s, true }
