package chat

import (
	"math"
	"strconv"
	"strings"
	"unicode"

	"gpuscope/text/chat/internal/raise"
)

// reprOf returns the text of Python's repr for a value.
func (s *state) reprOf(v any) string {
	var b strings.Builder
	s.repr(&b, v)
	return b.String()
}

// repr writes the text of Python's repr for a value.
func (s *state) repr(b *strings.Builder, v any) {
	s.spend(8)
	switch v := v.(type) {
	case nil:
		b.WriteString("None")
	case undefined:
		b.WriteString("Undefined")
	case bool:
		b.WriteString(map[bool]string{true: "True", false: "False"}[v])
	case int64:
		b.WriteString(strconv.FormatInt(v, 10))
	case float64:
		b.WriteString(float(v))
	case string:
		s.spend(len(v))
		b.WriteString(quoted(v))
	case markup:
		s.spend(len(v))
		b.WriteString("Markup(" + quoted(string(v)) + ")")
	case *list:
		defer s.nest(deepValues)()
		s.reprList(b, v)
	case *dict:
		defer s.nest(deepValues)()
		s.reprDict(b, v)
	case *namespace:
		defer s.nest(deepValues)()
		b.WriteString("<Namespace ")
		s.reprDict(b, &v.dict)
		b.WriteString(">")
	default:
		raise.At(s.line, "%s cannot be converted to text", typeName(v))
	}
}

func (s *state) reprList(b *strings.Builder, l *list) {
	kind, items := sequences[l.Kind], l.items
	if l.Kind == aRange {
		items = []any{l.bounds[0], l.bounds[1], l.bounds[2]}
		if l.bounds[2] == 1 {
			items = items[:2]
		}
	}
	b.WriteString(kind.open)
	for i, item := range items {
		if i > 0 {
			b.WriteString(", ")
		}
		s.repr(b, item)
	}
	if kind.like == aTuple && len(items) == 1 {
		b.WriteString(",")
	}
	b.WriteString(kind.end)
}

func (s *state) reprDict(b *strings.Builder, d *dict) {
	b.WriteString("{")
	for i := range d.keys {
		if i > 0 {
			b.WriteString(", ")
		}
		s.repr(b, d.keys[i])
		b.WriteString(": ")
		s.repr(b, d.values[i])
	}
	b.WriteString("}")
}

// float formats a float as Python does, with a decimal point or with an exponent of at least two digits.
func float(v float64) string {
	switch {
	case math.IsNaN(v):
		return "nan"
	case math.IsInf(v, 0):
		return strings.TrimPrefix(strings.ToLower(strconv.FormatFloat(v, 'g', -1, 64)), "+")
	}
	if abs := math.Abs(v); v != 0 && (abs < 1e-4 || abs >= 1e16) {
		return strconv.FormatFloat(v, 'e', -1, 64)
	}
	text := strconv.FormatFloat(v, 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return text
}

// reprEscapes holds the characters that repr writes as a backslash and a letter.
var reprEscapes = map[rune]string{'\n': `\n`, '\t': `\t`, '\r': `\r`, '\\': `\\`}

// quoted returns the text of Python's repr for a string.
func quoted(v string) string {
	quote := '\''
	if strings.Contains(v, "'") && !strings.Contains(v, `"`) {
		quote = '"'
	}
	var b strings.Builder
	b.WriteRune(quote)
	for _, r := range v {
		switch e, ok := reprEscapes[r]; {
		case ok:
			b.WriteString(e)
		case r == quote:
			b.WriteString(`\` + string(r))
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			b.WriteString(escapedRune(r))
		}
	}
	return b.String() + string(quote)
}

// ascii escapes all non-ASCII characters in the output of repr.
func ascii(repr string) string {
	var b strings.Builder
	for _, r := range repr {
		if r < 0x80 {
			b.WriteRune(r)
		} else {
			b.WriteString(escapedRune(r))
		}
	}
	return b.String()
}

func escapedRune(r rune) string {
	switch {
	case r < 0x100:
		return `\x` + hex(r, 2)
	case r < 0x10000:
		return `\u` + hex(r, 4)
	}
	return `\U` + hex(r, 8)
}

func hex(r rune, digits int) string {
	text := strconv.FormatInt(int64(r), 16)
	return strings.Repeat("0", max(0, digits-len(text))) + text
}
