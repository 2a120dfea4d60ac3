package widget

import (
	"slices"
	"strings"
)

// Motion is a way to move in a pane.
type Motion int

const (
	Up Motion = iota
	Down
	Left
	Right
	PageUp
	PageDown
	HalfUp
	HalfDown
	Top
	Bottom
)

// TextPane shows lines of text through a window.
type TextPane struct {
	Lines []string
	of    []int     // by line, which text it is a part of, rising; nil: each is its own
	First int       // line at the top of the window
	Stays linePlace // what a person went to is at the top again where lines are broken otherwise
	atEnd bool      // that was the end
	page  int
	X     int // cells scrolled to the right
	Tail  bool

	Marks  [][]Stretch // by line: what is painted
	Sought string      // that is searched for
	Found  []int       // the lines that have it
	At     int         // index into found of the one that was gone to
}

// linePlace is a line, by the text that it is a part of.
type linePlace struct{ text, part int }

// Load takes new lines, and of which texts they are parts. A pane that stood at its end stays there where
// tail is set: a log grows at its end.
func (p *TextPane) Load(lines []string, of []int) {
	p.Lines, p.of = lines, of
	if p.Tail && p.atEnd {
		p.GoTo(len(lines))
	}
	p.clamp()
}

// GoTo has a line at the top of the window, or the nearest that can be there.
func (p *TextPane) GoTo(line int) {
	last := max(0, len(p.Lines)-p.page)
	p.First, p.atEnd = Clamp(line, 0, last), line >= last
	if p.Stays = (linePlace{text: p.First}); p.First < len(p.of) {
		text := p.of[p.First]
		start, _ := slices.BinarySearch(p.of, text)
		p.Stays = linePlace{text, p.First - start}
	}
}

// clamp has what a person went to at the top, or the nearest that can be there.
func (p *TextPane) clamp() {
	line := p.Stays.text
	if p.of != nil {
		start, _ := slices.BinarySearch(p.of, p.Stays.text)
		end, _ := slices.BinarySearch(p.of, p.Stays.text+1)
		line = start + Clamp(p.Stays.part, 0, max(0, end-start-1))
	}
	p.First = Clamp(line, 0, max(0, len(p.Lines)-p.page))
}

func (p *TextPane) Move(m Motion) {
	to := p.First
	switch m {
	case Up:
		to--
	case Down:
		to++
	case PageUp:
		to -= max(1, p.page-1)
	case PageDown:
		to += max(1, p.page-1)
	case HalfUp:
		to -= max(1, p.page/2)
	case HalfDown:
		to += max(1, p.page/2)
	case Top:
		to = 0
	case Bottom:
		to = len(p.Lines)
	case Left:
		p.X = max(0, p.X-8)
	case Right:
		p.X += 8
	}
	if to != p.First {
		p.GoTo(to)
	}
}

// Find marks the lines that have a text, in letters of any case, and goes to the first from where the window
// stands.
func (p *TextPane) Find(s string) {
	p.Sought, p.Found, p.At = s, nil, 0
	if s == "" {
		return
	}
	for i, l := range p.Lines {
		if strings.Contains(strings.ToLower(l), strings.ToLower(s)) {
			if i < p.First {
				p.At++
			}
			p.Found = append(p.Found, i)
		}
	}
	if p.At == len(p.Found) {
		p.At = 0
	}
	p.reveal()
}

// Next goes to the next line that was found, or the one before, and says why it does not.
func (p *TextPane) Next(by int) string {
	switch {
	case p.Sought == "":
		return "no search text; {find} asks for one"
	case p.At+by < 0 || p.At+by >= len(p.Found):
		return "find " + p.Sought + ": no more matches in this direction"
	}
	p.At += by
	p.reveal()
	return ""
}

// reveal has the line that was gone to in the window.
func (p *TextPane) reveal() {
	if len(p.Found) == 0 {
		return
	}
	if l := p.Found[p.At]; l < p.First || l >= p.First+p.page {
		p.GoTo(l - p.page/3)
	}
}

// FoundText says what was found, "" where nothing is searched for.
func (p *TextPane) FoundText() string {
	switch {
	case p.Sought == "":
		return ""
	case len(p.Found) == 0:
		return MarkFail + " find " + p.Sought + ": no line"
	}
	return "find " + p.Sought + ": " + Count(p.At+1) + " of " + Plural(len(p.Found), "line")
}

// Where says which lines are in sight, "" where all are.
func (p *TextPane) Where() string {
	if len(p.Lines) <= p.page {
		return ""
	}
	return Count(p.Last()+1) + "/" + Count(len(p.Lines))
}

// Last is the line at the bottom of the window.
func (p *TextPane) Last() int { return min(p.First+p.page, len(p.Lines)) - 1 }

// Paint draws the window of w by h cells, with what is marked and found: a mark stands before a line that was
// found.
func (p *TextPane) Paint(t *Theme, w, h int) []string {
	p.page = h
	p.clamp()
	var out []string
	for i := p.First; i < min(len(p.Lines), p.First+h); i++ {
		var marks []Stretch
		if p.Marks != nil {
			marks = p.Marks[i]
		}
		margin := " "
		if k, found := slices.BinarySearch(p.Found, i); found {
			marks = Overlaid(marks, places(p.Lines[i], p.Sought))
			if margin = t.Put(Accent, markMarked); k == p.At {
				margin = t.Put(Selected, MarkSelected)
			}
		}
		out = append(out, strings.TrimRight(margin+PaintLine(t, p.Lines[i], marks, p.X, w-1), " "))
	}
	return out
}

// places are where a line has a text, in letters of any case.
func places(line, s string) []Stretch {
	lower, want := strings.ToLower(line), strings.ToLower(s)
	if len(lower) != len(line) || want == "" { // letters of other lengths: the places would be others
		return nil
	}
	var list []Stretch
	for at := 0; ; {
		i := strings.Index(lower[at:], want)
		if i < 0 {
			return list
		}
		list = append(list, Stretch{From: at + i, To: at + i + len(want), Paint: Selected})
		at += i + len(want)
	}
}

// Render draws the window of w by h cells.
func (p *TextPane) Render(w, h int) []string {
	fresh := p.page == 0
	if p.page = h; p.Tail && fresh {
		p.GoTo(len(p.Lines))
	}
	p.clamp()
	var out []string
	for _, l := range p.Lines[p.First:min(len(p.Lines), p.First+h)] {
		if p.X > 0 {
			l = CutLeft(l, p.X)
		}
		out = append(out, Cut(strings.TrimRight(l, " "), w))
	}
	return out
}
