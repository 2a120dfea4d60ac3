package table

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gpuscope/internal/printable"
)

// Segment is one of the parts of a line of a title.
type Segment struct {
	// Rank says how important the segment is; the lower, the more important. If a line is too long, segments
	// with the highest rank are removed first. Rank 0 is for essential facts: an error, the overhead of
	// timing, what to fix first, what changed. Ranks from 5 up are for facts that are nice to have. A segment
	// of rank 0 is removed last. It is first shortened to fewer clauses, and removed only if this does not
	// help.
	Rank int
	Text string
	// Short is shown if there is no room for Text; "" if there is no short form.
	Short string
	// With is set if the segment belongs to the previous segment. It then follows after a space, and the two
	// are removed together.
	With bool
}

// Say returns a segment whose text is formatted.
func Say(rank int, format string, args ...any) Segment {
	return Segment{Rank: rank, Text: fmt.Sprintf(format, args...)}
}

// Line is a line of a title. It consists of segments from left to right.
type Line struct {
	Separator string // text between two segments; "" stands for " · "
	Segments  []Segment
}

// Title returns a line with the usual separator. Segments without text are left out.
func Title(parts ...Segment) Line {
	return Line{Segments: slices.DeleteFunc(parts, func(p Segment) bool { return p.Text == "" })}
}

// String returns the line with all of its segments.
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

// clean returns the line without control characters, which names from a model file may contain.
func (l Line) clean() Line {
	parts := slices.Clone(l.Segments)
	for i := range parts {
		parts[i].Text, parts[i].Short = printable.Clean(parts[i].Text), printable.Clean(parts[i].Short)
	}
	l.Segments = parts
	return l
}

// cutOff is the end of a segment whose last words were cut off.
const cutOff = " …"

// cutWords returns as much of a text as fits in w cells. It cuts between two words, unless not even the first
// word fits.
func cutWords(s string, w int) string {
	for i := len(s) - 1; i > 0; i-- {
		if s[i] == ' ' && Width(s[:i]+cutOff) <= w {
			return s[:i] + cutOff
		}
	}
	return Cut(s, w)
}

// Fit returns the line with at most w cells. If there is not enough room for all segments, the most important
// ones are kept.
func (l Line) Fit(w int) string {
	l = l.clean()
	ranks := make([]int, len(l.Segments)) // if With is set, at least the rank of the previous segment
	order := make([]int, len(l.Segments))
	for i, p := range l.Segments {
		order[i], ranks[i] = i, p.Rank
		if p.With && i > 0 {
			ranks[i] = max(ranks[i], ranks[i-1])
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return ranks[a] - ranks[b] })
	said := make([]string, len(l.Segments)) // text shown for each segment; "" if it is removed
	whole := make([]bool, len(l.Segments))
	with := func(i int, text string) string { // the line if segment i had this text
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
