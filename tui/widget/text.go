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

// Everything that measures or cuts text goes through this file, and from here through package cells, so that
// two parts of a line never disagree about its width.

// Width is how many cells s takes on the screen.
func Width(s string) int { return table.Width(s) }

// Cut shortens s to at most w cells, with an ellipsis where something is missing.
func Cut(s string, w int) string { return table.Cut(s, w) }

// CutMiddle shortens s to at most w cells and keeps both ends: names differ at their ends.
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

// listSeparators stand between the parts of a text that is a list, or between what was and what is.
var listSeparators = []string{", ", " · ", " → "}

// cutList shortens a text to at most w cells: a list by whole parts of it from the end, for which more
// stands, since a part with a hole in it may say something else; any other, or a list of which not one part
// has room, in its middle, but at its end where it says what was and what is.
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

// tail is as much of the end of s as fits in w cells.
func tail(s string, w int) string {
	if w <= 0 {
		return ""
	}
	return CutLeft(s, Width(s)-w)
}

// cutPath shortens a name like layers.0.attn.norm: the end of a path tells more than its beginning. Other
// names lose their middle.
func cutPath(s string, w int) string {
	if Width(s) <= w || w < 3 || !strings.Contains(s, ".") {
		return CutMiddle(s, w)
	}
	return "…" + tail(s, w-1)
}

// Fit makes s exactly w cells wide: cut, or filled with spaces on the right.
func Fit(s string, w int) string {
	s = Cut(s, w)
	return s + Blank(w-Width(s))
}

// FitLeft makes s exactly w cells wide, filled with spaces on the left: for numbers.
func FitLeft(s string, w int) string {
	s = Cut(s, w)
	return Blank(w-Width(s)) + s
}

const blanks = "                                                                                                                                "

// Blank is n spaces.
func Blank(n int) string {
	switch {
	case n <= 0:
		return ""
	case n <= len(blanks):
		return blanks[:n]
	}
	return strings.Repeat(" ", n)
}

// FirstThatFits is the first of the texts that fits in w cells, and the last one, cut, where none does. Lines
// say what they would like to say from long to short.
func FirstThatFits(w int, texts ...string) string {
	for _, s := range texts {
		if Width(s) <= w {
			return s
		}
	}
	return Cut(texts[len(texts)-1], w)
}

// Spread puts left and right at the two ends of a line of w cells, with a blank between. The left one gives
// way.
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

// WrapText breaks s, cleaned, into lines of at most w cells, at spaces where there are any.
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
		for Width(word) > w { // longer than a line
			part := CutRight(word, w)
			if part == "" { // one character is
				part = cells.Cluster(word)
			}
			lines, word = append(lines, part), word[len(part):]
		}
		line, used = word, Width(word)
	}
	return append(lines, line)
}

// firstWord is the first word of s, with the spaces before it. A hyphen ends a word, but not one that is the
// minus of a number.
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

// breakable says that a line may be broken at a space: at all but the one that holds words together.
func breakable(r rune) bool { return unicode.IsSpace(r) && r != noBreakSpace }

const noBreakSpace = 0xa0

func letter(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }

// Count is n with thousands separators.
func Count[T ~int | ~int64](n T) string { return table.Integer(n) }

// Plural is "1 step" or "2 steps".
func Plural[T ~int | ~int64](n T, noun string) string { return table.Plural(n, noun) }

// CutRight is the first n cells of s.
func CutRight(s string, n int) string { return cells.Cut(s, n, "") }

// CutLeft takes the first n cells away.
func CutLeft(s string, n int) string { return cells.CutLeft(s, n) }

func Clamp(n, lo, hi int) int { return max(lo, min(n, hi)) }

// Joined puts the parts that are there together.
func Joined(sep string, parts ...string) string {
	var there []string
	for _, p := range parts {
		if p != "" {
			there = append(there, p)
		}
	}
	return strings.Join(there, sep)
}

// WrapIndented breaks a line to w cells; what follows stands a little deeper than the line.
func WrapIndented(l string, w int) []string {
	deep := len(l) - len(strings.TrimLeft(l, " "))
	return WrapUnder(l, w, deep, deep+2)
}

// WrapUnder breaks a line to w cells; what follows its first line stands so deep. Nothing is broken before
// head, which is of blanks or a label.
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

// Number writes an element in at most ten cells.
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
