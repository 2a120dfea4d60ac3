package table

import (
	"fmt"
	"slices"
	"strings"
)

// Part is a part of a title.
type Part struct {
	// Rank says how much the part matters: where there is no room the parts of the highest rank go first, and
	// those of rank 0 stay longest. What must not be lost (an error, what timing costs, what changed) is 0 or
	// 1, what is nice to have 5 and above.
	Rank int
	Text string
	// With says that the part goes on from the one before it, behind a space, and is lost with it.
	With bool
}

// Say is a part that is put together from a format.
func Say(rank int, format string, args ...any) Part {
	return Part{Rank: rank, Text: fmt.Sprintf(format, args...)}
}

// Line is a line of a title: parts, from left to right.
type Line struct {
	Separator string // between parts; "" is " · "
	Parts     []Part
}

// Title is a line of a title with the usual separator. Parts without text are left out.
func Title(parts ...Part) Line {
	return Line{Parts: slices.DeleteFunc(parts, func(p Part) bool { return p.Text == "" })}
}

// String is the whole line.
func (l Line) String() string {
	var b strings.Builder
	for i, p := range l.Parts {
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

// Fit is the line in at most w cells: as many of its parts as there is room for, those that matter most
// first.
func (l Line) Fit(w int) string {
	ranks := make([]int, len(l.Parts)) // of each part, no less than that of the one that it goes on from
	order := make([]int, len(l.Parts))
	for i, p := range l.Parts {
		order[i], ranks[i] = i, p.Rank
		if p.With && i > 0 {
			ranks[i] = max(ranks[i], ranks[i-1])
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return ranks[a] - ranks[b] })
	kept := make([]bool, len(l.Parts))
	fitted := ""
	for _, i := range order {
		if l.Parts[i].With && i > 0 && !kept[i-1] {
			continue
		}
		kept[i] = true
		some := Line{Separator: l.Separator}
		for k, p := range l.Parts {
			if kept[k] {
				some.Parts = append(some.Parts, p)
			}
		}
		if s := some.String(); fitted == "" || Width(s) <= w {
			fitted = s
		} else {
			kept[i] = false
		}
	}
	return Cut(fitted, w)
}
