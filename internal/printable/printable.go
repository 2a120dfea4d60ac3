// Package printable makes untrusted text safe to display: names and tokens of a model, strings of a trace,
// messages of a native library. Such text may contain terminal commands: ESC and the C1 controls start
// commands that move the cursor, change the title or write to the clipboard. It may also contain line
// breaks, characters that reverse the order of letters, and invisible characters.
//
// Text is cleaned once, when it becomes part of a line that people see:
//
//	Clean  one line: a name in a table, a title
//	Short  one line of a limited length: a value in an error
//	Text   several lines: the output of a model
//	Error  an error that may quote an untrusted value
//	Styled one line with our own colours: a line of the screen, after all other cleaning
//	Writer a stream, cleaned like Text: standard output on a terminal, standard error
//
// Output for programs (JSON, CSV, a trace) is not cleaned, so that its text stays unchanged.
package printable

import (
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean returns s as one line. Visible symbols replace characters that are not printable. ⏎ stands for a line
// break, ⇥ for a tab, U+FFFD for a byte that is not UTF-8, and · for all others. If s begins with a combining
// mark, Clean puts a dotted circle before it, because a terminal would draw the mark over the preceding text.
func Clean(s string) string {
	s = clean(s, line)
	if r, _ := utf8.DecodeRuneInString(s); r >= utf8.RuneSelf && joins(r) {
		return "◌" + s
	}
	return s
}

// joins reports whether a rune is drawn over the preceding rune: an accent, a vowel sign or a skin tone.
func joins(r rune) bool { return unicode.IsMark(r) || r >= 0x1f3fb && r <= 0x1f3ff }

// Text cleans s like Clean but keeps line breaks, tabs, and the joiners within words and emoji.
func Text(s string) string { return clean(s, text) }

// Styled cleans s like Clean but keeps escape sequences that set colours and weights (SGR).
func Styled(s string) string { return clean(s, styled) }

// Short cleans s like Clean and shortens it to at most n characters. It removes the middle, because the
// ends of names and messages are the most informative. Its run time does not grow with the length of s.
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

// Error returns err with a message of at most n characters. errors.Is and errors.As still find the wrapped
// errors.
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

// form determines which characters are kept unchanged.
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

// sign returns the replacement for the rune r, whose encoding is s.
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

// hidden reports whether a rune is not visible: a control character, a format character (bidirectional
// marks, zero widths, tags), a line separator, or a code point that may be ignored by default.
func hidden(r rune) bool {
	switch {
	case r < 0x7f:
		return r < ' '
	case r >= 0xae && r < 0x300, r >= 0x2070 && r < 0x3164:
		return false // drawing characters of the frames: lines, blocks, arrows, symbols
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp,
		unicode.Other_Default_Ignorable_Code_Point)
}

// sgr returns the length of the colour sequence (ESC [ parameters m) at the start of s, or 0.
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

// NewWriter returns a Writer that cleans its input like Text and writes the result to w. A character that is
// split over two writes is held back until it is complete. Flush writes the bytes that are still held back.
func NewWriter(w io.Writer) *Writer { return &Writer{to: w} }

// Writer cleans a stream of text. See NewWriter.
type Writer struct {
	to   io.Writer
	rest []byte // bytes of an incomplete character
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

// WriteStyled writes s and a line break. It cleans s, but keeps the escape sequences that set colours and
// weights (SGR).
func (w *Writer) WriteStyled(s string) error {
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(w.to, Styled(s)+"\n")
	return err
}

// Flush writes the bytes of a character that was never completed, as U+FFFD.
func (w *Writer) Flush() error {
	rest := string(w.rest)
	w.rest = nil
	_, err := io.WriteString(w.to, Text(rest))
	return err
}
