package widget

import (
	"slices"
	"strings"
)

// Motion is a movement of the cursor or the window in a pane.
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

// TextPane shows lines of text in a scrolling window.
type TextPane struct {
	Lines []string
	of    []int     // for each line, index of the text it was wrapped from; nil if no line was wrapped
	First int       // first line in the window
	Stays linePlace // line that the user scrolled to, kept at the top when the text is wrapped again
	atEnd bool      // the user scrolled to the end
	page  int
	X     int // number of cells scrolled to the right
	Tail  bool

	Marks  [][]Stretch // painted parts of each line
	Sought string      // search text
	Found  []int       // indices of the lines that contain the search text
	At     int         // index into Found of the current match
}

// linePlace identifies a line of wrapped text: the index of the text and of the line within this text.
type linePlace struct{ text, part int }

// Load sets new lines. `of` holds, for each line, the index of the text that the line was wrapped from. If
// Tail is set and the window shows the end, the window then shows the end of the new lines, as in a log that
// grows.
func (p *TextPane) Load(lines []string, of []int) {
	p.Lines, p.of = lines, of
	if p.Tail && p.atEnd {
		p.GoTo(len(lines))
	}
	p.clamp()
}

// GoTo scrolls so that the line is at the top of the window, or as close to the top as possible.
func (p *TextPane) GoTo(line int) {
	last := max(0, len(p.Lines)-p.page)
	p.First, p.atEnd = Clamp(line, 0, last), line >= last
	if p.Stays = (linePlace{text: p.First}); p.First < len(p.of) {
		text := p.of[p.First]
		start, _ := slices.BinarySearch(p.of, text)
		p.Stays = linePlace{text, p.First - start}
	}
}

// clamp scrolls to the line that the user last scrolled to, or as close to this line as possible.
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

// Find searches the lines for a text without regard to case. It goes to the first match at or after the top
// of the window.
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

// Next goes to the next match, or to the previous match if `by` is negative. It returns the reason if there
// is no such match, else "".
func (p *TextPane) Next(by int) string {
	switch {
	case p.Sought == "":
		return "no search text; press {find} to enter one"
	case p.At+by < 0 || p.At+by >= len(p.Found):
		return "find " + p.Sought + ": no more matches in this direction"
	}
	p.At += by
	p.reveal()
	return ""
}

// reveal scrolls the current match into the window.
func (p *TextPane) reveal() {
	if len(p.Found) == 0 {
		return
	}
	if l := p.Found[p.At]; l < p.First || l >= p.First+p.page {
		p.GoTo(l - p.page/3)
	}
}

// FoundText describes the result of the search. It returns "" if there is no search text.
func (p *TextPane) FoundText() string {
	switch {
	case p.Sought == "":
		return ""
	case len(p.Found) == 0:
		return MarkFail + " find " + p.Sought + ": not found"
	}
	return "find " + p.Sought + ": " + Count(p.At+1) + " of " + Plural(len(p.Found), "line")
}

// Where formats the position of the window in the text. It returns "" if all lines are visible.
func (p *TextPane) Where() string {
	if len(p.Lines) <= p.page {
		return ""
	}
	return Count(p.Last()+1) + "/" + Count(len(p.Lines))
}

// Last returns the index of the last line in the window.
func (p *TextPane) Last() int { return min(p.First+p.page, len(p.Lines)) - 1 }

// Paint draws the window in w by h cells, with the colors of its stretches and search matches. Lines with a
// match have a marker in the margin.
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

// places returns the stretches of `line` that are equal to s, without regard to case.
func places(line, s string) []Stretch {
	lower, want := strings.ToLower(line), strings.ToLower(s)
	if len(lower) != len(line) || want == "" { // lower case has other byte offsets
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

// Render draws the window in w by h cells as plain text, without colors.
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
