package tui

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"gpuscope/internal/cells"
	"gpuscope/internal/printable"
	"gpuscope/trace/table"
)

// Everything that measures or cuts text goes through this file, and from here through package cells, so that
// two parts of a line never disagree about its width.

// width is how many cells s takes on the screen.
func width(s string) int { return table.Width(s) }

// cut shortens s to at most w cells, with an ellipsis where something is missing.
func cut(s string, w int) string { return table.Cut(s, w) }

// cutMiddle shortens s to at most w cells and keeps both ends: names differ at their ends.
func cutMiddle(s string, w int) string {
	n := width(s)
	if n <= w {
		return s
	}
	if w < 3 {
		return cut(s, w)
	}
	head := (w - 1) / 2
	return cutRight(s, head) + "…" + tail(s, w-1-head)
}

// listSeparators stand between the parts of a text that is a list, or between what was and what is.
var listSeparators = []string{", ", " · ", " → "}

// cutList shortens a text to at most w cells: a list by whole parts of it from the end, for which more
// stands, since a part with a hole in it may say something else; any other, or a list of which not one part
// has room, in its middle, but at its end where it says what was and what is.
func cutList(s string, w int, more string) string {
	for part := s; width(s) > w; {
		i := -1
		for _, sep := range listSeparators {
			i = max(i, strings.LastIndex(part, sep))
		}
		switch {
		case i >= 0:
		case strings.Contains(s, "→"):
			return cut(s, w)
		default:
			return cutMiddle(s, w)
		}
		if part = part[:i]; part != "" && width(part)+width(more) <= w {
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
	return cutLeft(s, width(s)-w)
}

// cutPath shortens a name like layers.0.attn.norm: the end of a path tells more than its beginning. Other
// names lose their middle.
func cutPath(s string, w int) string {
	if width(s) <= w || w < 3 || !strings.Contains(s, ".") {
		return cutMiddle(s, w)
	}
	return "…" + tail(s, w-1)
}

// fit makes s exactly w cells wide: cut, or filled with spaces on the right.
func fit(s string, w int) string {
	s = cut(s, w)
	return s + blank(w-width(s))
}

// fitLeft makes s exactly w cells wide, filled with spaces on the left: for numbers.
func fitLeft(s string, w int) string {
	s = cut(s, w)
	return blank(w-width(s)) + s
}

const blanks = "                                                                                                                                "

// blank is n spaces.
func blank(n int) string {
	switch {
	case n <= 0:
		return ""
	case n <= len(blanks):
		return blanks[:n]
	}
	return strings.Repeat(" ", n)
}

// first is the first of the texts that fits in w cells, and the last one, cut, where none does. Lines say
// what they would like to say from long to short.
func first(w int, texts ...string) string {
	for _, s := range texts {
		if width(s) <= w {
			return s
		}
	}
	return cut(texts[len(texts)-1], w)
}

// spread puts left and right at the two ends of a line of w cells, with a blank between. The left one gives
// way.
func spread(left, right string, w int) string {
	if right != "" {
		right = " " + right
	}
	r := width(right)
	if r > w {
		return fit(right[1:], w)
	}
	return fit(left, w-r) + right
}

// wrapText breaks s, cleaned, into lines of at most w cells, at spaces where there are any.
func wrapText(s string, w int) []string {
	if w <= 0 {
		return nil
	}
	var lines []string
	line, used := "", 0
	for s = printable.Clean(s); s != ""; {
		spaces, word := firstWord(s)
		s = s[len(spaces)+len(word):]
		if used+width(spaces)+width(word) <= w {
			line, used = line+spaces+word, used+width(spaces)+width(word)
			continue
		}
		if line != "" {
			lines = append(lines, line)
		}
		for width(word) > w { // longer than a line
			part := cutRight(word, w)
			if part == "" { // one character is
				part = cells.Cluster(word)
			}
			lines, word = append(lines, part), word[len(part):]
		}
		line, used = word, width(word)
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

// count is n with thousands separators.
func count[T ~int | ~int64](n T) string { return table.Integer(n) }

// plural is "1 step" or "2 steps".
func plural[T ~int | ~int64](n T, noun string) string { return table.Plural(n, noun) }

// cutRight is the first n cells of s.
func cutRight(s string, n int) string { return cells.Cut(s, n, "") }

// cutLeft takes the first n cells away.
func cutLeft(s string, n int) string { return cells.CutLeft(s, n) }

func clamp(n, lo, hi int) int { return max(lo, min(n, hi)) }

// joined puts the parts that are there together.
func joined(sep string, parts ...string) string {
	var there []string
	for _, p := range parts {
		if p != "" {
			there = append(there, p)
		}
	}
	return strings.Join(there, sep)
}

// wrapIndented breaks a line to w cells; what follows stands a little deeper than the line.
func wrapIndented(l string, w int) []string {
	deep := len(l) - len(strings.TrimLeft(l, " "))
	return wrapUnder(l, w, deep, deep+2)
}

// wrapUnder breaks a line to w cells; what follows its first line stands so deep. Nothing is broken before
// head, which is of blanks or a label.
func wrapUnder(l string, w, head, deep int) []string {
	if width(l) <= w || w < 4*deep {
		return wrapText(l, w)
	}
	lines := wrapText(l[head:], w-deep)
	lines[0] = printable.Clean(l[:head]) + lines[0]
	for i := range lines[1:] {
		lines[i+1] = blank(deep) + lines[i+1]
	}
	return lines
}
