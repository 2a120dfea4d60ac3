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
	// Rank is the priority of the segment. If a title is too long, segments with the highest rank are
	// removed first, and those with rank 0 last. Rank 0 is for essential facts: an error, the overhead of
	// timing, what to fix first, what changed. Rank 5 and above is for facts that are nice to have. A
	// segment with rank 0 is first shortened at the end of a clause, and removed only if this is not
	// enough.
	Rank int
	Text string
	// Short replaces Text if there is no room for Text; it may be "".
	Short string
	// With reports whether the segment continues the previous segment after a space. Such a segment is
	// removed together with the previous segment.
	With bool
}

// Say returns a segment with a formatted text.
func Say(rank int, format string, args ...any) Segment {
	return Segment{Rank: rank, Text: fmt.Sprintf(format, args...)}
}

// Line is a line of a title. Its segments are ordered from left to right.
type Line struct {
	Separator string // text between segments; "" means " · "
	Segments  []Segment
}

// Title returns a title line with the default separator. It omits segments without text.
func Title(parts ...Segment) Line {
	return Line{Segments: slices.DeleteFunc(parts, func(p Segment) bool { return p.Text == "" })}
}

// String returns the whole line.
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

// clean returns the line without control characters, because segments may contain names from a model file.
func (l Line) clean() Line {
	parts := slices.Clone(l.Segments)
	for i := range parts {
		parts[i].Text, parts[i].Short = printable.Clean(parts[i].Text), printable.Clean(parts[i].Short)
	}
	l.Segments = parts
	return l
}

// cutOff marks a segment whose end was cut off.
const cutOff = " …"

// cutWords shortens a text to at most w cells. It cuts between words if at least one word fits.
func cutWords(s string, w int) string {
	for i := len(s) - 1; i > 0; i-- {
		if s[i] == ' ' && Width(s[:i]+cutOff) <= w {
			return s[:i] + cutOff
		}
	}
	return Cut(s, w)
}

// Fit returns the line in at most w cells. It keeps as many segments as fit, the most important ones first.
func (l Line) Fit(w int) string {
	l = l.clean()
	ranks := make([]int, len(l.Segments)) // no lower than the rank of the continued segment
	order := make([]int, len(l.Segments))
	for i, p := range l.Segments {
		order[i], ranks[i] = i, p.Rank
		if p.With && i > 0 {
			ranks[i] = max(ranks[i], ranks[i-1])
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return ranks[a] - ranks[b] })
	said := make([]string, len(l.Segments)) // displayed text of each segment, "" if it was removed
	whole := make([]bool, len(l.Segments))
	with := func(i int, text string) string { // the line with text as segment i
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
