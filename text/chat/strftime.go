package chat

import (
	"strconv"
	"strings"
	"time"

	"gpuscope/text/chat/internal/raise"
	"gpuscope/text/chat/internal/strftime"
)

// strftime formats a time as Python does on Linux. It supports a width and the flags of the GNU C library.
// The flag _ pads with spaces, 0 pads with zeros, - does not pad, ^ converts to upper case, and # swaps the
// case.
func (s *state) strftime(at time.Time, format string) string {
	s.spend(len(format))
	var b strings.Builder
	for rest := format; rest != ""; {
		text, code, found := strings.Cut(rest, "%")
		b.WriteString(text)
		if !found {
			break
		}
		n := len(code) - len(strings.TrimLeft(code, "_-0^#"))
		flags := code[:n]
		digits, code := s.digits(code[n:])
		code = strings.TrimLeft(code, "EO") // modifiers without effect in the C locale
		if code == "" {
			raise.At(s.line, "strftime_now: the format %q ends in the middle of a conversion code", format)
		}
		d, ok := strftime.Codes[code[0]]
		if !ok || d.Plain && (flags != "" || digits >= 0) {
			raise.At(s.line, "strftime_now: unknown code %%%c in %q", code[0], format)
		}
		text = s.directed(d, at, flags, digits)
		s.spend(len(text))
		b.WriteString(text)
		rest = code[1:]
	}
	return b.String()
}

// directed formats a time with one strftime code.
func (s *state) directed(d strftime.Code, at time.Time, flags string, width int64) string {
	fill, text := byte(' '), ""
	if d.Number != nil {
		fill = d.Fill
		text = strconv.FormatInt(d.Number(at), 10)
	} else {
		text = d.Text(at)
	}
	for _, flag := range flags {
		switch flag {
		case '_':
			fill = ' '
		case '0':
			fill = '0'
		case '-':
			fill = 0
		case '^':
			text = strings.ToUpper(text)
		case '#':
			if upper := strings.ToUpper(text); strings.ContainsAny(text, " 0123456789") {
			} else if text != upper {
				text = upper
			} else {
				text = strings.ToLower(text)
			}
		}
	}
	if fill == 0 {
		fill = ' '
	} else {
		width = max(width, int64(d.Width))
	}
	missing := max(0, width-int64(len(text)))
	s.spendWidth(missing)
	return strings.Repeat(string(fill), int(missing)) + text
}
