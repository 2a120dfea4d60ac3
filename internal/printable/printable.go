// Package printable makes text that others wrote fit to be shown: names and tokens of a model, strings of a
// trace, words of a native library. Any of it may hold what a terminal obeys (ESC and the C1 controls begin
// commands that move the cursor, change the title or write the clipboard), what breaks a line, or what turns
// the order of letters around or is not seen at all.
//
// Such text is cleaned once, where it enters a line that people will see:
//
//	Clean  one line: a name in a table, a title
//	Short  one line of a bounded length: a value in an error
//	Text   several lines: what a model generates
//	Error  an error that may quote such a value
//	Styled one line that has our own colours in it: the canvas, behind all the others
//	Writer Text, for whatever is written through it: standard output on a terminal, standard error
//
// What is written for programs (JSON, CSV, a trace) is not cleaned: its text stays what it was.
package printable

import (
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean is s on one line, with a visible sign in place of each character that is not printed: ⏎ of a line
// break, ⇥ of a tab, · of any other, and U+FFFD of a byte that is not UTF-8. A mark at the beginning has a
// dotted circle to stand on, since a terminal would draw it over what is before the text.
func Clean(s string) string {
	s = clean(s, line)
	if r, _ := utf8.DecodeRuneInString(s); r >= utf8.RuneSelf && joins(r) {
		return "◌" + s
	}
	return s
}

// joins says that a rune is drawn over the one before it: accents, vowel signs, skin tones.
func joins(r rune) bool { return unicode.IsMark(r) || r >= 0x1f3fb && r <= 0x1f3ff }

// Text is Clean, but line breaks and tabs stay, and so do the joiners within words and emoji.
func Text(s string) string { return clean(s, text) }

// Styled is Clean, but sequences that set colours and weights (SGR) stay.
func Styled(s string) string { return clean(s, styled) }

// Short is Clean, and at most n characters long: what is longer loses its middle, since names and messages
// tell most at their ends. It takes no longer for a long s than for a short one.
func Short(s string, n int) string {
	n = max(n, 3)
	if len(s) > 2*utf8.UTFMax*n {
		s = s[:utf8.UTFMax*n] + "…" + s[len(s)-utf8.UTFMax*n:]
	}
	runes := []rune(Clean(s))
	if len(runes) <= n {
		return string(runes)
	}
	tail := (n - 1) / 3
	return string(runes[:n-1-tail]) + "…" + string(runes[len(runes)-tail:])
}

// Error is err with at most n characters of text. What it wraps is still found in it.
func Error(err error, n int) error {
	if text := err.Error(); Short(text, n) != text {
		return shortError{Short(text, n), err}
	}
	return err
}

type shortError struct {
	text string
	err  error
}

func (e shortError) Error() string { return e.text }
func (e shortError) Unwrap() error { return e.err }

// form says what is left as it is.
type form int

const (
	line form = iota
	text
	styled
)

func clean(s string, f form) string {
	i := 0
	for i < len(s) && s[i] >= ' ' && s[i] < 0x7f {
		i++
	}
	if i == len(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + len(s)/8)
	b.WriteString(s[:i])
	for i < len(s) {
		if f == styled {
			if n := sgr(s[i:]); n > 0 {
				b.WriteString(s[i : i+n])
				i += n
				continue
			}
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		b.WriteString(sign(s[i:i+n], r, f))
		i += n
	}
	return b.String()
}

// sign is what stands for the rune r, which was written as s.
func sign(s string, r rune, f form) string {
	const nonJoiner, joiner = '\u200c', '\u200d'
	switch {
	case r == utf8.RuneError && len(s) == 1:
		return "\ufffd"
	case f == text && (r == '\n' || r == '\t' || r == nonJoiner || r == joiner), !hidden(r):
		return s
	case r == '\n':
		return "⏎"
	case r == '\t':
		return "⇥"
	}
	return "·"
}

// hidden says that a rune draws nothing of its own: a control, a format character (bidirectional marks, zero
// widths, tags), a separator of lines, or what is to be ignored where it is not known.
func hidden(r rune) bool {
	switch {
	case r < 0x7f:
		return r < ' '
	case r >= 0xae && r < 0x300, r >= 0x2070 && r < 0x3164:
		return false // what frames are drawn of: lines, blocks, arrows, signs
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp,
		unicode.Other_Default_Ignorable_Code_Point)
}

// sgr is the length of the sequence ESC [ parameters m that s begins with, or 0.
func sgr(s string) int {
	if len(s) < 3 || s[0] != 0x1b || s[1] != '[' {
		return 0
	}
	for i := 2; i < len(s); i++ {
		switch c := s[i]; {
		case c == 'm':
			return i + 1
		case c != ';' && c != ':' && (c < '0' || c > '9'):
			return 0
		}
	}
	return 0
}

// NewWriter is a writer that gives w the Text of what is written to it. A character whose bytes come in two
// writes waits for its end; Flush writes what waits.
func NewWriter(w io.Writer) *Writer { return &Writer{to: w} }

// Writer cleans what is written through it.
type Writer struct {
	to   io.Writer
	rest []byte // of an unfinished character
}

func (w *Writer) Write(p []byte) (int, error) {
	b := append(w.rest, p...)
	whole := len(b)
	for back := 1; back < utf8.UTFMax && back <= len(b); back++ {
		if c := b[len(b)-back]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-back:]) {
				whole -= back
			}
			break
		}
	}
	if _, err := io.WriteString(w.to, Text(string(b[:whole]))); err != nil {
		return 0, err
	}
	w.rest = append(w.rest[:0], b[whole:]...)
	return len(p), nil
}

// Flush writes the bytes of a character that was never finished, as U+FFFD.
func (w *Writer) Flush() error {
	rest := string(w.rest)
	w.rest = nil
	_, err := io.WriteString(w.to, Text(rest))
	return err
}
