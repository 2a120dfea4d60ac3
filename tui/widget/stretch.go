package widget

import (
	"slices"
	"sort"
	"strings"
)

// Stretch is a byte range of a text and the paint to draw it with. If quoted is set, a terminal without
// colors puts “” around the range.
type Stretch struct {
	From, To int
	Paint    Paint
	Quoted   bool
}

// Stretches returns a stretch for each of the byte ranges, with the other fields of `like`.
func Stretches(ranges [][2]int, like Stretch) []Stretch {
	list := make([]Stretch, len(ranges))
	for i, r := range ranges {
		list[i] = like
		list[i].From, list[i].To = r[0], r[1]
	}
	return list
}

// Overlaid merges two sorted lists of stretches, each without overlaps. Where stretches of both lists
// overlap, the stretch of the second list takes precedence.
func Overlaid(under, over []Stretch) []Stretch {
	var out []Stretch
	for _, u := range under {
		for i := firstAfter(over, u.From); i < len(over) && over[i].From < u.To; i++ {
			if part := u; over[i].From > u.From {
				part.To = over[i].From
				out = append(out, part)
			}
			u.From = min(u.To, over[i].To)
		}
		if u.From < u.To {
			out = append(out, u)
		}
	}
	out = append(out, over...)
	slices.SortFunc(out, func(a, b Stretch) int { return a.From - b.From })
	return out
}

// firstAfter returns the index of the first stretch that ends after the byte offset `at`.
func firstAfter(list []Stretch, at int) int {
	return sort.Search(len(list), func(i int) bool { return list[i].To > at })
}

// Within returns stretches that cover the byte range from..to without gaps: the given stretches, cut to this
// range, and plain stretches between them.
func Within(list []Stretch, from, to int) []Stretch {
	var out []Stretch
	for i := firstAfter(list, from); from < to && i < len(list) && list[i].From < to; i++ {
		s := list[i]
		s.From, s.To = max(s.From, from), min(s.To, to)
		if s.From > from {
			out = append(out, Stretch{From: from, To: s.From})
		}
		out = append(out, s)
		from = s.To
	}
	if from < to {
		out = append(out, Stretch{From: from, To: to})
	}
	return out
}

// PaintLine returns w cells of the line, starting at cell x, with its stretches painted.
func PaintLine(t *Theme, line string, list []Stretch, x, w int) string {
	var b strings.Builder
	parts := Within(list, 0, len(line))
	left := w
	for i, s := range parts {
		text := line[s.From:s.To]
		if s.Quoted && t.end == "" {
			text = "“" + text + "”"
		}
		if n := Width(text); n <= x {
			x -= n
			continue
		}
		text = CutLeft(text, x)
		x = 0
		n := Width(text)
		if more := i+1 < len(parts); n > left || n == left && more {
			b.WriteString(t.Put(s.Paint, Cut(text+"…", left)))
			break
		}
		b.WriteString(t.Put(s.Paint, text))
		left -= n
	}
	return b.String()
}
