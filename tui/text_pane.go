package tui

import "strings"

// motion is a way to move in a pane.
type motion int

const (
	up motion = iota
	down
	left
	right
	pageUp
	pageDown
	halfUp
	halfDown
	top
	bottom
)

// textPane shows lines of text through a window.
type textPane struct {
	lines []string
	first int // line at the top of the window
	page  int
	x     int // cells scrolled to the right
	tail  bool
}

// load takes new lines. A pane that stood at its end stays there where tail is set: a log grows at its end.
func (p *textPane) load(lines []string) {
	atEnd := p.first+p.page >= len(p.lines)
	p.lines = lines
	if p.tail && atEnd {
		p.first = len(lines)
	}
	p.clamp()
}

func (p *textPane) clamp() { p.first = clamp(p.first, 0, max(0, len(p.lines)-p.page)) }

func (p *textPane) move(m motion) {
	switch m {
	case up:
		p.first--
	case down:
		p.first++
	case pageUp:
		p.first -= max(1, p.page-1)
	case pageDown:
		p.first += max(1, p.page-1)
	case halfUp:
		p.first -= max(1, p.page/2)
	case halfDown:
		p.first += max(1, p.page/2)
	case top:
		p.first = 0
	case bottom:
		p.first = len(p.lines)
	case left:
		p.x = max(0, p.x-8)
	case right:
		p.x += 8
	}
	p.clamp()
}

// where says which lines are in sight, "" where all are.
func (p *textPane) where() string {
	if len(p.lines) <= p.page {
		return ""
	}
	return count(min(p.first+p.page, len(p.lines))) + "/" + count(len(p.lines))
}

// render draws the window of w by h cells.
func (p *textPane) render(w, h int) []string {
	if p.tail && p.page == 0 {
		p.first = len(p.lines)
	}
	p.page = h
	p.clamp()
	var out []string
	for _, l := range p.lines[p.first:min(len(p.lines), p.first+h)] {
		if p.x > 0 {
			l = cutLeft(l, p.x)
		}
		out = append(out, cut(strings.TrimRight(l, " "), w))
	}
	return out
}
