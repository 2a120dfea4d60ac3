package table

import (
	"slices"
	"strings"

	"gpuscope/internal/cells"
)

// gutter is the number of empty cells between two columns of a printed table.
const gutter = 2

// These are minimum widths of a text column, in cells. At first, text columns keep at least `wideLeast`
// cells, and columns for wide screens are dropped until the table fits. If it still does not fit, text
// columns keep at least `least` cells, and other columns are dropped too.
const wideLeast, least = 24, 8

// fitted returns the columns that fit into a width, and the width of each of them in cells. It first makes
// text columns narrower, so that their text is wrapped. It never wraps a number, because a part of a number
// is a different number. If this is not enough, it drops columns, beginning with those for the widest
// screens, from right to left. It never drops the first column or the tree column.
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
	// drop removes one column whose Width is at least `from`. It reports whether there was such a column.
	drop := func(from int) bool {
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
	const everywhere = 80 // Width of columns for screens of any width
	for sum(wideLeast) > width && drop(everywhere+1) {
	}
	for sum(least) > width && drop(0) {
	}
	for total := sum(width); total > width; total = sum(width) { // narrow the widest text column
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

// Wrap divides a text into lines of at most w cells. It divides at spaces where there are any. The lines
// after the first are indented by `hanging` more cells than the first line.
func Wrap(s string, w, hanging int) []string {
	if w <= 0 || Width(s) <= w {
		return []string{s}
	}
	words := strings.TrimLeft(s, " ")
	indent := strings.Repeat(" ", min(len(s)-len(words), w/2))
	under := strings.Repeat(" ", min(len(indent)+hanging, w/2))
	line, empty := indent, true // line has no word yet
	var lines []string
	for _, word := range strings.Fields(words) {
		if !empty && Width(line+" "+word) > w {
			lines = append(lines, line)
			line, empty = under, true
		}
		for empty && Width(line+word) > w { // the word is longer than a line, so it is cut
			part := cells.Cut(word, w-Width(line), "")
			if part == "" {
				part = "…" // the line has no room for even one character
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
