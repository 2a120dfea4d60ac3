package widget

import (
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"gpuscope/internal/cells"
	"gpuscope/internal/printable"
	"gpuscope/trace/table"
)

// All measuring and cutting of text goes through this file and package cells, so that the width of a text is
// the same everywhere.

// Width returns the number of cells that s occupies on the screen.
func Width(s string) int { return table.Width(s) }

// Cut shortens s to at most w cells. An ellipsis replaces the missing part.
func Cut(s string, w int) string { return table.Cut(s, w) }

// CutMiddle shortens s to at most w cells and keeps both ends, at which names often differ.
func CutMiddle(s string, w int) string {
	n := Width(s)
	if n <= w {
		return s
	}
	if w < 3 {
		return Cut(s, w)
	}
	head := (w - 1) / 2
	return CutRight(s, head) + "…" + tail(s, w-1-head)
}

// listSeparators are the separators of lists and of changes (old → new).
var listSeparators = []string{", ", " · ", " → "}

// cutList shortens a text to at most w cells. From a list, it removes whole parts at the end and appends
// `more`, because half a part could be misread. If the text is not a list, or if its first part does not fit,
// cutList removes the middle of the text, or the end of a text with an arrow (old → new).
func cutList(s string, w int, more string) string {
	for part := s; Width(s) > w; {
		i := -1
		for _, sep := range listSeparators {
			i = max(i, strings.LastIndex(part, sep))
		}
		switch {
		case i >= 0:
		case strings.Contains(s, "→"):
			return Cut(s, w)
		default:
			return CutMiddle(s, w)
		}
		if part = part[:i]; part != "" && Width(part)+Width(more) <= w {
			return part + more
		}
	}
	return s
}

// tail returns the end of s, w cells wide.
func tail(s string, w int) string {
	if w <= 0 {
		return ""
	}
	return CutLeft(s, Width(s)-w)
}

// cutPath shortens a path such as layers.0.attn.norm at the start, because the end identifies an operator
// better. It cuts names without a dot in the middle, and keeps the number at the start of a name such as
// 15.apply_rotary_emb+17.sdpa.
func cutPath(s string, w int) string {
	number := len(s) - len(strings.TrimLeft(s, "0123456789"))
	switch {
	case Width(s) <= w || w < 3 || !strings.Contains(s, "."):
		return CutMiddle(s, w)
	case number > 0 && number+3 < w && strings.HasPrefix(s[number:], "."):
		return s[:number+1] + "…" + tail(s, w-number-2)
	}
	return "…" + tail(s, w-1)
}

// Fit makes s exactly w cells wide. It cuts s or pads it with spaces on the right.
func Fit(s string, w int) string {
	s = Cut(s, w)
	return s + Blank(w-Width(s))
}

// FitLeft makes s exactly w cells wide with padding on the left, which aligns numbers to the right.
func FitLeft(s string, w int) string {
	s = Cut(s, w)
	return Blank(w-Width(s)) + s
}

const blanks = "                                                                                                                                "

// Blank returns n spaces.
func Blank(n int) string {
	switch {
	case n <= 0:
		return ""
	case n <= len(blanks):
		return blanks[:n]
	}
	return strings.Repeat(" ", n)
}

// FirstThatFits returns the first text that fits in w cells or, if none fits, the last text, cut to w cells.
// Callers list the texts from the longest to the shortest.
func FirstThatFits(w int, texts ...string) string {
	for _, s := range texts {
		if Width(s) <= w {
			return s
		}
	}
	return Cut(texts[len(texts)-1], w)
}

// Spread places `left` and `right` at the two ends of a line of w cells with at least one space between them.
// The left text is cut if there is too little room.
func Spread(left, right string, w int) string {
	if right != "" {
		right = " " + right
	}
	r := Width(right)
	if r > w {
		return Fit(right[1:], w)
	}
	return Fit(left, w-r) + right
}

// WrapText cleans s and breaks it into lines of at most w cells, at spaces if possible.
func WrapText(s string, w int) []string {
	if w <= 0 {
		return nil
	}
	var lines []string
	line, used := "", 0
	for s = printable.Clean(s); s != ""; {
		spaces, word := firstWord(s)
		s = s[len(spaces)+len(word):]
		if used+Width(spaces)+Width(word) <= w {
			line, used = line+spaces+word, used+Width(spaces)+Width(word)
			continue
		}
		if line != "" {
			lines = append(lines, line)
		}
		for Width(word) > w { // the word is longer than a line
			part := CutRight(word, w)
			if part == "" { // one character is wider than the line
				part = cells.Cluster(word)
			}
			lines, word = append(lines, part), word[len(part):]
		}
		line, used = word, Width(word)
	}
	return append(lines, line)
}

// firstWord returns the first word of s and the spaces before this word. A hyphen ends a word, but the minus
// sign of a number does not.
func firstWord(s string) (spaces, word string) {
	word = strings.TrimLeftFunc(s, breakable)
	spaces = s[:len(s)-len(word)]
	before := ' '
	for i, r := range word {
		next, _ := utf8.DecodeRuneInString(word[i+utf8.RuneLen(r):])
		switch {
		case breakable(r):
			return spaces, word[:i]
		case r == '-' && (letter(before) || !unicode.IsNumber(next)):
			return spaces, word[:i+1]
		}
		before = r
	}
	return spaces, word
}

// breakable reports whether r is a space at which a line can be broken: any space but the no-break space.
func breakable(r rune) bool { return unicode.IsSpace(r) && r != noBreakSpace }

const noBreakSpace = 0xa0

func letter(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }

// Count formats n with thousands separators.
func Count[T ~int | ~int64](n T) string { return table.Integer(n) }

// Plural formats a count with its noun: "1 step" or "2 steps".
func Plural[T ~int | ~int64](n T, noun string) string { return table.Plural(n, noun) }

// CutRight returns the first n cells of s.
func CutRight(s string, n int) string { return cells.Cut(s, n, "") }

// CutLeft returns s without its first n cells.
func CutLeft(s string, n int) string { return cells.CutLeft(s, n) }

func Clamp(n, lo, hi int) int { return max(lo, min(n, hi)) }

// Joined joins the parts that are not empty.
func Joined(sep string, parts ...string) string {
	var there []string
	for _, p := range parts {
		if p != "" {
			there = append(there, p)
		}
	}
	return strings.Join(there, sep)
}

// WrapIndented breaks a line into lines of w cells. Continuation lines are indented by two cells more than l.
func WrapIndented(l string, w int) []string {
	deep := len(l) - len(strings.TrimLeft(l, " "))
	return WrapUnder(l, w, deep, deep+2)
}

// WrapUnder breaks a line into lines of w cells. Continuation lines are indented by `deep` cells. The first
// `head` bytes of the line, which are spaces or a label, stay together.
func WrapUnder(l string, w, head, deep int) []string {
	if Width(l) <= w || w < 4*deep {
		return WrapText(l, w)
	}
	lines := WrapText(l[head:], w-deep)
	lines[0] = printable.Clean(l[:head]) + lines[0]
	for i := range lines[1:] {
		lines[i+1] = Blank(deep) + lines[i+1]
	}
	return lines
}

// Number formats a tensor element in at most ten cells.
func Number(v float64) string {
	switch {
	case math.IsNaN(v):
		return "NaN"
	case math.IsInf(v, 1):
		return "+Inf"
	case math.IsInf(v, -1):
		return "-Inf"
	case v == math.Trunc(v) && math.Abs(v) < 1e9:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case math.Abs(v) >= 0.1 && math.Abs(v) < 1e6:
		return strconv.FormatFloat(v, 'g', 6, 64)
	case math.Abs(v) >= 1e-3 && math.Abs(v) < 1:
		return strconv.FormatFloat(v, 'g', 4, 64)
	}
	return strconv.FormatFloat(v, 'e', 2, 64)
}

// Shortened returns at most `most` of the lines, each w cells wide. If it leaves lines out, the last returned
// line ends with `more`.
func Shortened(lines []string, most, w int, more string) []string {
	if len(lines) <= most || most <= 0 {
		return lines[:min(len(lines), max(0, most))]
	}
	last := WrapText(lines[most-1], max(1, w-Width(more)))[0]
	return append(lines[:most-1:most-1], strings.TrimRight(last, " …")+more)
}
