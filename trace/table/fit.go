package table

import (
	"slices"
	"strings"

	"gpuscope/internal/cells"
)

// gutter is how many cells stand between the columns of a printed table.
const gutter = 2

// leasts are the cells that a column of words keeps before columns are dropped for it, and at the least.
var leasts = []int{24, 12, 8}

// fitted are columns in at most so many cells, and how wide each is. Words are broken into lines; numbers
// are not, for a part of one is another number. Where that is not enough, columns go: those that need the
// widest screens first, from the right. The first column and that of the tree stay.
func (t *Table) fitted(cols, natural []int, width int) (kept, widths []int) {
	kept, widths = slices.Clone(cols), slices.Clone(natural)
	words := func(k int) bool { return !t.Columns[kept[k]].Right && t.Columns[kept[k]].Unit == "" }
	sum := func(least int) int {
		total := gutter * (len(kept) - 1)
		for k, w := range widths {
			if words(k) {
				w = min(w, least)
			}
			total += w
		}
		return total
	}
	stays := func(k int) bool { return k == 0 || t.Columns[kept[k]].Tree }
	drop := func(from int) bool { // a column of screens of so many cells or more
		at := -1
		for k, c := range kept {
			if w := t.Columns[c].Width; !stays(k) && w >= from && (at < 0 || w >= t.Columns[kept[at]].Width) {
				at = k
			}
		}
		if at >= 0 {
			kept, widths = slices.Delete(kept, at, at+1), slices.Delete(widths, at, at+1)
		}
		return at >= 0
	}
	const everywhere = 80 // the Width of columns that every screen has
	for i, least := range leasts {
		from := everywhere + 1
		if i == len(leasts)-1 {
			from = 0
		}
		for sum(least) > width && drop(from) {
		}
	}
	for total := sum(width); total > width; total = sum(width) { // the widest first
		at := -1
		for k := range kept {
			if words(k) && widths[k] > 1 && (at < 0 || widths[k] > widths[at]) {
				at = k
			}
		}
		if at < 0 {
			break
		}
		widths[at]--
	}
	for k := range widths {
		widths[k] = min(widths[k], width)
	}
	return kept, widths
}

// Wrap breaks a text into lines of at most w cells, at spaces where it has some. Lines after the first are
// indented by so many cells more than it is.
func Wrap(s string, w, hanging int) []string {
	if w <= 0 || Width(s) <= w {
		return []string{s}
	}
	words := strings.TrimLeft(s, " ")
	indent := strings.Repeat(" ", min(len(s)-len(words), w/2))
	under := strings.Repeat(" ", min(len(indent)+hanging, w/2))
	line, empty := indent, true // no word is in it yet
	var lines []string
	for _, word := range strings.Fields(words) {
		if !empty && Width(line+" "+word) > w {
			lines = append(lines, line)
			line, empty = under, true
		}
		for empty && Width(line+word) > w { // too long for any line
			part := cells.Cut(word, w-Width(line), "")
			if part == "" {
				part = "…" // not even one sign has room
				word = ""
			}
			lines = append(lines, line+part)
			line, word = under, strings.TrimPrefix(word, part)
		}
		switch {
		case word == "":
		case empty:
			line, empty = line+word, false
		default:
			line += " " + word
		}
	}
	if !empty {
		lines = append(lines, line)
	}
	return lines
}
