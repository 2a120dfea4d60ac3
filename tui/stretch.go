package tui

import (
	"slices"
	"sort"
	"strings"
)

// stretch is a part of a text, in bytes, that is painted. Quoted ones stand in “” where there are no colours.
type stretch struct {
	from, to int
	paint    paint
	quoted   bool
}

// stretches are ranges, by their places, that are like one.
func stretches(ranges [][2]int, like stretch) []stretch {
	list := make([]stretch, len(ranges))
	for i, r := range ranges {
		list[i] = like
		list[i].from, list[i].to = r[0], r[1]
	}
	return list
}

// overlaid are the stretches of two lists, each by its places and without overlaps: where both have one it is
// that of over.
func overlaid(under, over []stretch) []stretch {
	var out []stretch
	for _, u := range under {
		for i := firstAfter(over, u.from); i < len(over) && over[i].from < u.to; i++ {
			if part := u; over[i].from > u.from {
				part.to = over[i].from
				out = append(out, part)
			}
			u.from = min(u.to, over[i].to)
		}
		if u.from < u.to {
			out = append(out, u)
		}
	}
	out = append(out, over...)
	slices.SortFunc(out, func(a, b stretch) int { return a.from - b.from })
	return out
}

// firstAfter is the index of the first stretch of a list that ends after a place.
func firstAfter(list []stretch, at int) int {
	return sort.Search(len(list), func(i int) bool { return list[i].to > at })
}

// within are the stretches of a list from a place to another, cut there, with plain ones between them.
func within(list []stretch, from, to int) []stretch {
	var out []stretch
	for i := firstAfter(list, from); from < to && i < len(list) && list[i].from < to; i++ {
		s := list[i]
		s.from, s.to = max(s.from, from), min(s.to, to)
		if s.from > from {
			out = append(out, stretch{from: from, to: s.from})
		}
		out = append(out, s)
		from = s.to
	}
	if from < to {
		out = append(out, stretch{from: from, to: to})
	}
	return out
}

// paintLine is a line in w cells from the x-th on, with its stretches painted.
func paintLine(t *theme, line string, list []stretch, x, w int) string {
	var b strings.Builder
	parts := within(list, 0, len(line))
	left := w
	for i, s := range parts {
		text := line[s.from:s.to]
		if s.quoted && t.end == "" {
			text = "“" + text + "”"
		}
		if n := width(text); n <= x {
			x -= n
			continue
		}
		text = cutLeft(text, x)
		x = 0
		n := width(text)
		if more := i+1 < len(parts); n > left || n == left && more {
			b.WriteString(t.put(s.paint, cut(text+"…", left)))
			break
		}
		b.WriteString(t.put(s.paint, text))
		left -= n
	}
	return b.String()
}
