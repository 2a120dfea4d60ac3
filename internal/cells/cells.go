// Package cells decides how many columns of a terminal a text takes. Everything that measures, cuts or places
// text on a screen asks this package, so no two parts of a line disagree.
//
// Terminals do disagree. Some add up the widths of code points, as wcwidth(3) has them (tmux, xterm); others
// measure grapheme clusters (kitty, Ghostty, mode 2027). A thumb with a skin tone takes four columns in the
// first kind and two in the second, a Devanagari conjunct three and one, and each kind has its own edition of
// Unicode. A program that trusts one answer draws shifted rows on the other terminal.
//
// So a text has the room that either kind needs: each code point counts what the more generous of the two
// gives it, and the width of a text is the sum. Width(a+b) is Width(a)+Width(b) for all a and b, whatever
// clusters form where they meet. Place draws a frame so that what follows such a text is in its column on
// every terminal.
package cells

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// Width is how many columns s takes. Escape sequences and control characters take none.
func Width(s string) int {
	n := 0
	for len(s) > 0 {
		c := s[0]
		switch {
		case c >= ' ' && c < 0x7f:
			n++
			s = s[1:]
		case c < utf8.RuneSelf:
			s = s[len(control(s)):]
		default:
			r, size := utf8.DecodeRuneInString(s)
			n += room(r)
			s = s[size:]
		}
	}
	return n
}

// Cut is the first w columns of s, with tail as their end where something is missing. Clusters are kept
// whole, and so are escape sequences, including those after the cut.
func Cut(s string, w int, tail string) string {
	if Width(s) <= w {
		return s
	}
	w -= Width(tail)
	if w < 0 {
		return ""
	}
	var b strings.Builder
	used, full := 0, false
	for len(s) > 0 {
		piece, isControl := next(s)
		s = s[len(piece):]
		if isControl {
			b.WriteString(piece)
			continue
		}
		if used += Width(piece); !full && used > w {
			full = true
			b.WriteString(tail)
		}
		if !full {
			b.WriteString(piece)
		}
	}
	return b.String()
}

// CutLeft is s without its first n columns. Of a cluster that is cut through, blanks stay. Escape sequences
// are kept, including those before the cut.
func CutLeft(s string, n int) string {
	var b strings.Builder
	for len(s) > 0 && n > 0 {
		piece, isControl := next(s)
		s = s[len(piece):]
		if isControl {
			b.WriteString(piece)
		} else {
			n -= Width(piece)
		}
	}
	return b.String() + strings.Repeat(" ", max(0, -n)) + s
}

// Cluster is the first grapheme cluster of s, which is not empty: what a person takes for one character.
func Cluster(s string) string {
	if s[0] < utf8.RuneSelf && (len(s) == 1 || s[1] < utf8.RuneSelf) {
		return s[:1]
	}
	c, _ := ansi.FirstGraphemeCluster(s, ansi.GraphemeWidth)
	return c
}

// Place is a frame of lines that begin at the left edge, with cursor movements around each cluster that
// terminals may measure differently: its room is erased, the cluster drawn, and the cursor set after the
// room. A renderer that adds up the widths of clusters finds the same widths in the result as Width does in
// the frame.
func Place(frame string) string {
	if plain(frame) {
		return frame
	}
	var b strings.Builder
	for column := 0; len(frame) > 0; {
		piece, isControl := next(frame)
		frame = frame[len(piece):]
		n := Width(piece)
		switch {
		case piece == "\n":
			b.WriteString(piece)
			column = 0
		case isControl || agreed(piece):
			b.WriteString(piece)
			column += n
		default:
			if n > 0 {
				sequence(&b, n, 'X') // ECH
			}
			if more := n - ansi.StringWidth(piece); more > 0 {
				b.WriteString(strings.Repeat(" ", more))
				sequence(&b, column+1, 'G') // CHA
			}
			b.WriteString(piece)
			column += n
			sequence(&b, column+1, 'G')
		}
	}
	return b.String()
}

// sequence writes a control sequence with one parameter.
func sequence(b *strings.Builder, n int, final byte) {
	b.WriteString("\x1b[")
	b.WriteString(strconv.Itoa(n))
	b.WriteByte(final)
}

// next is the first piece of s, which is not empty: a control character or escape sequence, or a cluster.
func next(s string) (piece string, isControl bool) {
	if c := s[0]; c < ' ' || c == 0x7f {
		return control(s), true
	}
	return Cluster(s), false
}

// control is the control character or escape sequence that s begins with.
func control(s string) string {
	_, _, n, _ := ansi.DecodeSequence(s, ansi.NormalState, nil)
	return s[:max(1, n)]
}

// Code points that some terminal gives more columns than the two tables of x/ansi do.
const (
	emojiVariation = 0xfe0f // makes a narrow sign a wide emoji where clusters are measured
	circledFirst   = 0x3248 // circled numbers on black squares are wide in the C library of GNU
	circledLast    = 0x324f
)

// room is how many columns a code point takes at most, alone or as a part of a cluster.
func room(r rune) int {
	switch {
	case lone(r):
		return 1
	case r == emojiVariation:
		return 1
	case r >= circledFirst && r <= circledLast:
		return 2
	}
	s := string(r)
	return max(ansi.StringWidth(s), ansi.StringWidthWc(s))
}

// plain says that a text has only signs that are in their own cell on every terminal, and colours.
func plain(s string) bool {
	for _, r := range s {
		if (r < ' ' || r >= 0x7f) && r != 0x1b && r != '\n' && !lone(r) {
			return false
		}
	}
	return true
}

// lone holds the signs that the screens draw most: each takes one cell and joins nothing before it. Latin and
// Greek letters, arrows and operators, boxes and blocks, Braille.
func lone(r rune) bool {
	switch {
	case r >= 0xa1 && r < 0x250:
		return r != 0xad && r != 0xa9 && r != 0xae
	case r >= 0x391 && r <= 0x3c9, r >= 0x2190 && r < 0x2300, r >= 0x2500 && r <= 0x259f,
		r >= 0x2800 && r <= 0x28ff:
		return true
	}
	switch r {
	case '…', '–', '—', '•', '‹', '›', '▲', '▸', '▾', '◆', '✓', '✗', '⏎', utf8.RuneError:
		return true
	}
	return false
}

// agreed says that all terminals give a cluster the same columns: it is one letter, digit or punctuation mark
// of the first plane. Symbols are left out, since every edition of Unicode makes some of them wide, and the
// vowels and final consonants of Hangul, which join what is before them.
func agreed(cluster string) bool {
	r, size := utf8.DecodeRuneInString(cluster)
	if size != len(cluster) {
		return false
	}
	if r < 0x7f || lone(r) {
		return true
	}
	s := string(r)
	return r <= 0xffff && unicode.In(r, unicode.L, unicode.N, unicode.P, unicode.Zs) &&
		(r < 0x1160 || r > 0x11ff) && (r < 0xd7b0 || r > 0xd7ff) &&
		ansi.StringWidth(s) == room(r) && ansi.StringWidthWc(s) == room(r)
}
