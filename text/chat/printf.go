package chat

import (
	"strconv"
	"strings"

	"gpuscope/text/chat/internal/pytext"
	"gpuscope/text/chat/internal/raise"
)

// printf implements Python's % operator for strings: conversions with flags, width and precision. If the
// format is markup, the values are escaped and the result is markup.
func (s *state) printf(format, with any) any {
	v := s.text(format)
	p := &printer{s: s, format: v, list: []any{with}, markup: isA[markup](format)}
	if l, ok := with.(*list); ok && sequences[l.Kind].like == aTuple {
		p.list = l.items
	} else if _, text := isText(with); !text && isSequence(with) {
		p.mapping = with
	}
	s.spend(len(v))
	var b strings.Builder
	for p.rest = v; p.rest != ""; {
		text, rest, found := strings.Cut(p.rest, "%")
		p.rest = rest
		b.WriteString(text)
		if found {
			text = p.conversion()
			s.spend(len(text))
			b.WriteString(text)
		}
	}
	if len(p.list) > 0 && p.mapping == nil {
		raise.At(s.line, "there are more values than conversions in the format %q", v)
	}
	return s.sameKind(format, b.String())
}

// printer is the state of one % operation.
type printer struct {
	s       *state
	format  string
	rest    string // unread part of the format
	list    []any  // remaining values
	mapping any    // dict with the values for conversions such as %(name)s; nil if there is no dict
	markup  bool   // whether the format is markup, so that values are escaped
}

// next removes the next value from the list and returns it.
func (p *printer) next() any {
	if len(p.list) == 0 {
		raise.At(p.s.line, "there are fewer values than conversions in the format %q", p.format)
	}
	v := p.list[0]
	p.list = p.list[1:]
	return v
}

// byte returns the next byte of the format, or 0 at its end.
func (p *printer) byte() byte {
	if p.rest == "" {
		return 0
	}
	return p.rest[0]
}

// number parses a width or a precision. A * stands for the next value, which may be negative.
func (p *printer) number() int64 {
	if p.byte() == '*' {
		p.rest = p.rest[1:]
		return p.s.whole(p.next())
	}
	n, rest := p.s.digits(p.rest)
	p.rest = rest
	return max(0, n)
}

// conversion parses one conversion, after its %, and formats a value with it.
func (p *printer) conversion() string {
	s := p.s
	if p.byte() == '%' {
		p.rest = p.rest[1:]
		return "%"
	}
	named := p.byte() == '('
	if named {
		name, rest, ok := parenthesized(p.rest)
		if !ok || p.mapping == nil {
			raise.At(s.line, "the format %q has a named conversion, so it needs a closing ) and a dict",
				p.format)
		}
		d, ok := p.mapping.(*dict)
		if !ok {
			raise.At(s.line, "the format %q needs a dict, not %s", p.format, typeName(p.mapping))
		}
		v, ok := s.get(d, name)
		if !ok {
			raise.At(s.line, "the format %q needs a value for %s, but the dict has none", p.format, name)
		}
		p.rest, p.list = rest, []any{v}
	}
	f := spec{fill: " ", align: '>', precision: -1}
	zero := false
	for ; p.byte() != 0 && strings.IndexByte("-+ #0", p.byte()) >= 0; p.rest = p.rest[1:] {
		switch c := p.byte(); {
		case c == '-':
			f.align = '<'
		case c == '#':
			f.alternate = true
		case c == '0':
			zero = true
		case f.sign != '+':
			f.sign = c
		}
	}
	if f.width = p.number(); f.width < 0 {
		f.align, f.width = '<', -f.width
	}
	if p.byte() == '.' {
		p.rest = p.rest[1:]
		f.precision = max(0, p.number())
	}
	if p.byte() != 0 && strings.IndexByte("hlL", p.byte()) >= 0 {
		p.rest = p.rest[1:]
	}
	verb := p.byte()
	if verb == 0 {
		raise.At(s.line, "the format %q ends in the middle of a conversion", p.format)
	}
	p.rest = p.rest[1:]
	if zero && f.align == '>' {
		f.align, f.fill = '=', "0"
	}
	return p.converted(verb, p.next(), f)
}

// parenthesized splits a text that starts with a name in parentheses into this name and the rest of the text.
func parenthesized(text string) (name, rest string, ok bool) {
	open := 0
	for i := range len(text) {
		switch text[i] {
		case '(':
			open++
		case ')':
			if open--; open == 0 {
				return text[1:i], text[i+1:], true
			}
		}
	}
	return "", "", false
}

// converted formats one value.
func (p *printer) converted(verb byte, v any, f spec) string {
	s := p.s
	if p.markup && strings.IndexByte("oxXc", verb) >= 0 {
		raise.At(s.line, "the conversion %%%c is not allowed in markup", verb)
	}
	switch verb {
	case 's', 'r', 'a', 'c':
		text := ""
		switch verb {
		case 's':
			text = s.text(v)
		case 'r':
			text = s.reprOf(v)
		case 'a':
			text = ascii(s.reprOf(v))
		default:
			text = p.character(v)
		}
		if p.markup && (verb != 's' || !isA[markup](v)) {
			text = string(s.escaped(text))
		}
		if r := []rune(text); f.precision >= 0 && int64(len(r)) > f.precision && verb != 'c' {
			text = string(r[:f.precision])
		}
		if f.align == '=' { // only numbers are padded with zeros
			f.align, f.fill = '>', " "
		}
		return s.aligned("", text, f)
	case 'd', 'i', 'u', 'o', 'x', 'X':
		n, ok := whole(v)
		if x, isFloat := v.(float64); isFloat && strings.IndexByte("diu", verb) >= 0 {
			n, ok = s.truncated(x), true
		} else if text, isString := isText(v); isString && p.markup {
			n, ok = s.parseWhole(text, 10)
		}
		if !ok {
			raise.At(s.line, "the format %%%c needs a whole number, not %s", verb, typeName(v))
		}
		base := bases[0]
		if b, ok := bases[verb]; ok {
			base = b
		}
		text := strconv.FormatUint(magnitude(n), base.base)
		if verb == 'X' {
			text = strings.ToUpper(text)
		}
		if missing := f.precision - int64(len(text)); missing > 0 {
			s.spendWidth(missing)
			text = strings.Repeat("0", int(missing)) + text
		}
		sign := f.signOf(n < 0)
		if f.alternate {
			sign += base.prefix
		}
		return s.aligned(sign, text, f)
	case 'e', 'E', 'f', 'F', 'g', 'G':
		f.verb = verb
		if p.markup {
			return s.formatReal(s.realOrText(v), f)
		}
		return s.formatReal(s.real(v), f)
	}
	raise.At(s.line, "the format %q has an unknown conversion %%%c", p.format, verb)
	return ""
}

// character returns the text for %c. The value is a single character or its code point.
func (p *printer) character(v any) string {
	if text, ok := isText(v); ok && pytext.Runes(text) == 1 {
		return text
	}
	return p.s.character(p.s.whole(v))
}
