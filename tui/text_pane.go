package tui

import (
	"slices"
	"strings"
)

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
	of    []int     // by line, which text it is a part of, rising; nil: each is its own
	first int       // line at the top of the window
	stays linePlace // what a person went to is at the top again where lines are broken otherwise
	atEnd bool      // that was the end
	page  int
	x     int // cells scrolled to the right
	tail  bool

	marks  [][]stretch // by line: what is painted
	sought string      // that is searched for
	found  []int       // the lines that have it
	at     int         // index into found of the one that was gone to
}

// linePlace is a line, by the text that it is a part of.
type linePlace struct{ text, part int }

// load takes new lines, and of which texts they are parts. A pane that stood at its end stays there where
// tail is set: a log grows at its end.
func (p *textPane) load(lines []string, of []int) {
	p.lines, p.of = lines, of
	if p.tail && p.atEnd {
		p.goTo(len(lines))
	}
	p.clamp()
}

// goTo has a line at the top of the window, or the nearest that can be there.
func (p *textPane) goTo(line int) {
	last := max(0, len(p.lines)-p.page)
	p.first, p.atEnd = clamp(line, 0, last), line >= last
	if p.stays = (linePlace{text: p.first}); p.first < len(p.of) {
		text := p.of[p.first]
		start, _ := slices.BinarySearch(p.of, text)
		p.stays = linePlace{text, p.first - start}
	}
}

// clamp has what a person went to at the top, or the nearest that can be there.
func (p *textPane) clamp() {
	line := p.stays.text
	if p.of != nil {
		start, _ := slices.BinarySearch(p.of, p.stays.text)
		end, _ := slices.BinarySearch(p.of, p.stays.text+1)
		line = start + clamp(p.stays.part, 0, max(0, end-start-1))
	}
	p.first = clamp(line, 0, max(0, len(p.lines)-p.page))
}

func (p *textPane) move(m motion) {
	to := p.first
	switch m {
	case up:
		to--
	case down:
		to++
	case pageUp:
		to -= max(1, p.page-1)
	case pageDown:
		to += max(1, p.page-1)
	case halfUp:
		to -= max(1, p.page/2)
	case halfDown:
		to += max(1, p.page/2)
	case top:
		to = 0
	case bottom:
		to = len(p.lines)
	case left:
		p.x = max(0, p.x-8)
	case right:
		p.x += 8
	}
	if to != p.first {
		p.goTo(to)
	}
}

// find marks the lines that have a text, in letters of any case, and goes to the first from where the window
// stands.
func (p *textPane) find(s string) {
	p.sought, p.found, p.at = s, nil, 0
	if s == "" {
		return
	}
	for i, l := range p.lines {
		if strings.Contains(strings.ToLower(l), strings.ToLower(s)) {
			if i < p.first {
				p.at++
			}
			p.found = append(p.found, i)
		}
	}
	if p.at == len(p.found) {
		p.at = 0
	}
	p.reveal()
}

// next goes to the next line that was found, or the one before, and says why it does not.
func (p *textPane) next(by int) string {
	switch {
	case p.sought == "":
		return "nothing is searched for; {find} finds a text"
	case p.at+by < 0 || p.at+by >= len(p.found):
		return "find " + p.sought + ": no more lines that way"
	}
	p.at += by
	p.reveal()
	return ""
}

// reveal has the line that was gone to in the window.
func (p *textPane) reveal() {
	if len(p.found) == 0 {
		return
	}
	if l := p.found[p.at]; l < p.first || l >= p.first+p.page {
		p.goTo(l - p.page/3)
	}
}

// foundText says what was found, "" where nothing is searched for.
func (p *textPane) foundText() string {
	switch {
	case p.sought == "":
		return ""
	case len(p.found) == 0:
		return markFail + " find " + p.sought + ": no line"
	}
	return "find " + p.sought + ": " + count(p.at+1) + " of " + plural(len(p.found), "line")
}

// where says which lines are in sight, "" where all are.
func (p *textPane) where() string {
	if len(p.lines) <= p.page {
		return ""
	}
	return count(p.last()+1) + "/" + count(len(p.lines))
}

// last is the line at the bottom of the window.
func (p *textPane) last() int { return min(p.first+p.page, len(p.lines)) - 1 }

// paint draws the window of w by h cells, with what is marked and found: a mark stands before a line that was
// found.
func (p *textPane) paint(t *theme, w, h int) []string {
	p.page = h
	p.clamp()
	var out []string
	for i := p.first; i < min(len(p.lines), p.first+h); i++ {
		var marks []stretch
		if p.marks != nil {
			marks = p.marks[i]
		}
		margin := " "
		if k, found := slices.BinarySearch(p.found, i); found {
			marks = overlaid(marks, places(p.lines[i], p.sought))
			if margin = t.put(accent, markMarked); k == p.at {
				margin = t.put(selected, markSelected)
			}
		}
		out = append(out, strings.TrimRight(margin+paintLine(t, p.lines[i], marks, p.x, w-1), " "))
	}
	return out
}

// places are where a line has a text, in letters of any case.
func places(line, s string) []stretch {
	lower, want := strings.ToLower(line), strings.ToLower(s)
	if len(lower) != len(line) || want == "" { // letters of other lengths: the places would be others
		return nil
	}
	var list []stretch
	for at := 0; ; {
		i := strings.Index(lower[at:], want)
		if i < 0 {
			return list
		}
		list = append(list, stretch{from: at + i, to: at + i + len(want), paint: selected})
		at += i + len(want)
	}
}

// render draws the window of w by h cells.
func (p *textPane) render(w, h int) []string {
	fresh := p.page == 0
	if p.page = h; p.tail && fresh {
		p.goTo(len(p.lines))
	}
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
