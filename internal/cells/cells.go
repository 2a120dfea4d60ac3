// Package cells determines how many columns of a terminal a text occupies. All code that measures, cuts or
// places text on a screen uses this package, so that all parts of a line agree.
//
// Terminals measure text differently. Some add up the widths of code points, like wcwidth(3) (tmux, xterm).
// Others measure grapheme clusters (kitty, Ghostty, mode 2027). A thumbs-up emoji with a skin tone occupies
// four columns in the first kind of terminal and two in the second. A Devanagari conjunct occupies three
// columns in the first kind and one in the second. The terminals also use different versions of Unicode. A
// program that relies on one rule draws shifted rows on the other terminals.
//
// This package therefore reserves enough room for both kinds. The width of a code point is the larger of its
// widths in the two kinds of terminals. The width of a text is the sum of these widths. Width(a+b) equals
// Width(a)+Width(b) for all a and b, whatever clusters form at the boundary. Place draws a frame so that the
// text after a cluster is in its correct column on every terminal.
package cells

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// Width returns the number of columns of s. Escape sequences and control characters have width 0.
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

// Cut shortens s to at most w columns. If s is wider, the result ends with `tail`, whose columns count too.
// Cut never splits a cluster, and it keeps all escape sequences, including those after the cut.
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

// CutLeft returns s without its first n columns. Blanks replace the rest of a cluster that is split. All
// escape sequences stay, including those before the cut.
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

// Cluster returns the first grapheme cluster of s, which must not be empty. A person sees a cluster as one
// character.
func Cluster(s string) string {
	if s[0] < utf8.RuneSelf && (len(s) == 1 || s[1] < utf8.RuneSelf) {
		return s[:1]
	}
	c, _ := ansi.FirstGraphemeCluster(s, ansi.GraphemeWidth)
	return c
}

// Place adds cursor movements to a frame whose lines begin at the left edge. The movements surround each
// cluster whose width may differ between terminals: they erase its room, draw the cluster, and move the
// cursor to the end of the room. A renderer that adds up cluster widths measures the same widths in the
// result as Width does in the frame.
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
				sequence(&b, n, 'X') // ECH, erase characters
			}
			if more := n - ansi.StringWidth(piece); more > 0 {
				b.WriteString(strings.Repeat(" ", more))
				sequence(&b, column+1, 'G') // CHA, move the cursor to a column
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

// next returns the first piece of s, which must not be empty. A piece is a cluster, a control character or
// an escape sequence.
func next(s string) (piece string, isControl bool) {
	if c := s[0]; c < ' ' || c == 0x7f {
		return control(s), true
	}
	return Cluster(s), false
}

// control returns the control character or escape sequence at the start of s.
func control(s string) string {
	_, _, n, _ := ansi.DecodeSequence(s, ansi.NormalState, nil)
	return s[:max(1, n)]
}

// Some terminals draw these code points wider than both width tables of x/ansi say.
const (
	emojiVariation = 0xfe0f // on terminals that measure clusters, makes a narrow symbol a wide emoji
	circledFirst   = 0x3248 // circled numbers on black squares; wide in the GNU C library
	circledLast    = 0x324f
)

// room returns the maximum width of a code point in columns, by itself or as a part of a cluster.
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

// plain reports whether a text consists only of colours and of characters that occupy their own cell on
// every terminal.
func plain(s string) bool {
	for _, r := range s {
		if (r < ' ' || r >= 0x7f) && r != 0x1b && r != '\n' && !lone(r) {
			return false
		}
	}
	return true
}

// lone reports whether a character is one of those that the screens draw most: Latin and Greek letters,
// arrows, operators, boxes, blocks and Braille. Each occupies one cell and never joins the character before
// it.
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

// agreed reports whether a cluster is one letter, digit or punctuation mark of the Basic Multilingual Plane.
// All terminals give such a cluster the same width. Symbols do not count, because each version of Unicode
// makes some of them wide. Hangul vowels and final consonants do not count, because they join the preceding
// character.
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
