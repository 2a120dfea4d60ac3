package table

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gpuscope/internal/printable"
)

// Segment is a part of a title.
type Segment struct {
	// Rank says how much the part matters: where there is no room the parts of the highest rank go first, and
	// those of rank 0 stay longest. What must not be lost (an error, what timing costs, what to fix first,
	// what changed) is 0, what is nice to have 5 and above. A part of rank 0 is rather cut, after a
	// clause, than lost.
	Rank int
	Text string
	// Short is what is said where there is no room for Text; it may be "".
	Short string
	// With reports that the part goes on from the one before it, after a space, and is lost with it.
	With bool
}

// Say is a part that is put together from a format.
func Say(rank int, format string, args ...any) Segment {
	return Segment{Rank: rank, Text: fmt.Sprintf(format, args...)}
}

// Line is a line of a title: parts, from left to right.
type Line struct {
	Separator string // between parts; "" is " · "
	Segments  []Segment
}

// Title is a line of a title with the usual separator. Parts without text are left out.
func Title(parts ...Segment) Line {
	return Line{Segments: slices.DeleteFunc(parts, func(p Segment) bool { return p.Text == "" })}
}

// String is the whole line.
func (l Line) String() string { return l.clean().joined() }

func (l Line) joined() string {
	var b strings.Builder
	for i, p := range l.Segments {
		switch {
		case i > 0 && p.With:
			b.WriteByte(' ')
		case i > 0 && l.Separator == "":
			b.WriteString(" · ")
		case i > 0:
			b.WriteString(l.Separator)
		}
		b.WriteString(p.Text)
	}
	return b.String()
}

// clean is the line without what a terminal obeys: parts may hold names of models.
func (l Line) clean() Line {
	parts := slices.Clone(l.Segments)
	for i := range parts {
		parts[i].Text, parts[i].Short = printable.Clean(parts[i].Text), printable.Clean(parts[i].Short)
	}
	l.Segments = parts
	return l
}

// cutOff stands for what of a part there is no room for.
const cutOff = " …"

// cutWords is as much of a text that is too long as w cells hold, by whole words where one has room.
func cutWords(s string, w int) string {
	for i := len(s) - 1; i > 0; i-- {
		if s[i] == ' ' && Width(s[:i]+cutOff) <= w {
			return s[:i] + cutOff
		}
	}
	return Cut(s, w)
}

// Fit is the line in at most w cells: as many of its parts as there is room for, those that matter most
// first.
func (l Line) Fit(w int) string {
	l = l.clean()
	ranks := make([]int, len(l.Segments)) // of each part, no less than that of the one that it goes on from
	order := make([]int, len(l.Segments))
	for i, p := range l.Segments {
		order[i], ranks[i] = i, p.Rank
		if p.With && i > 0 {
			ranks[i] = max(ranks[i], ranks[i-1])
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return ranks[a] - ranks[b] })
	said := make([]string, len(l.Segments)) // of each part, "" where it is lost
	whole := make([]bool, len(l.Segments))
	with := func(i int, text string) string { // the line, with one more text
		some := Line{Separator: l.Separator}
		for k, p := range l.Segments {
			if p.Text = said[k]; k == i {
				p.Text = text
			}
			if p.Text != "" {
				some.Segments = append(some.Segments, p)
			}
		}
		return some.joined()
	}
	put := func(i int, text string) bool {
		if text == "" || Width(with(i, text)) > w {
			return false
		}
		said[i], whole[i] = text, true
		return true
	}
	must, _ := slices.BinarySearchFunc(order, 1, func(i, rank int) int { return ranks[i] - rank })
	for n, i := range order[:must] {
		p := l.Segments[i]
		if lost := p.With && i > 0 && !whole[i-1]; lost || put(i, p.Short) || put(i, p.Text) {
			continue
		}
		text := cmp.Or(p.Short, p.Text)
		room := w - Width(with(i, text)) + Width(text)
		if some := Clauses(text, room-Width(cutOff)); some != "" {
			said[i] = some + cutOff
		} else if n == 0 {
			said[i] = cutWords(text, room)
		}
	}
	for _, i := range order[:must] {
		if whole[i] && said[i] == l.Segments[i].Short {
			put(i, l.Segments[i].Text)
		}
	}
	for n, i := range order[must:] {
		p := l.Segments[i]
		if lost := p.With && i > 0 && !whole[i-1]; lost || put(i, p.Text) || put(i, p.Short) {
			continue
		}
		if n == 0 && must == 0 {
			said[i] = cutWords(p.Text, w)
		}
	}
	return Cut(with(-1, ""), w)
}
