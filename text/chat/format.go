package chat

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"gpuscope/text/chat/internal/pytext"
	"gpuscope/text/chat/internal/raise"
)

// This file implements the format specifications of Python's str.format. printf formats numbers with the same
// functions.

// spec is a format specification such as ">8,.2f".
type spec struct {
	fill      string
	align     byte // one of < > = ^; 0 if absent
	sign      byte // + - or space; 0 if absent
	positive  bool // option z: negative zero is written without a minus
	alternate bool // option #
	width     int64
	group     byte  // , or _; 0 if absent
	precision int64 // -1 if absent
	verb      byte  // type character; 0 if absent
}

// fill implements Python's str.format. If the format is markup, the values are escaped.
func (s *state) fill(format any, list []any, named *dict) string {
	f := &filler{s: s, list: list, named: named, markup: isA[markup](format)}
	return f.fill(s.text(format), 2)
}

// filler is the state of one str.format call.
type filler struct {
	s      *state
	list   []any
	named  *dict
	next   int  // index of the argument for the next empty field {}
	places bool // whether a numbered field such as {0} was used
	markup bool // whether the text is markup, so that values are escaped
}

// fill replaces the fields of a text. The specification of a field may contain fields too. `deep` is the
// number of further levels that are allowed.
func (f *filler) fill(v string, deep int) string {
	s := f.s
	if deep < 0 {
		raise.At(s.line, "format: fields nest more than 2 levels deep")
	}
	s.spend(len(v))
	var b strings.Builder
	for rest := v; rest != ""; {
		i := strings.IndexAny(rest, "{}")
		if i < 0 {
			b.WriteString(rest)
			break
		}
		b.WriteString(rest[:i])
		if strings.HasPrefix(rest[i+1:], rest[i:i+1]) {
			b.WriteString(rest[i : i+1])
			rest = rest[i+2:]
			continue
		}
		n := fieldEnd(rest[i:])
		if rest[i] == '}' || n < 0 {
			raise.At(s.line, "format: %q has an unmatched %q", v, rest[i])
		}
		text := f.field(rest[i+1:i+n], deep)
		s.spend(len(text))
		b.WriteString(text)
		rest = rest[i+n+1:]
	}
	return b.String()
}

// fieldEnd returns the index of the brace that closes the field at the start of text, or -1 if there is none.
func fieldEnd(text string) int {
	open, index := 0, false
	for i := range len(text) {
		switch c := text[i]; {
		case c == '[' && open == 1:
			index = true
		case c == ']':
			index = false
		case index:
		case c == '{':
			open++
		case c == '}':
			if open--; open == 0 {
				return i
			}
		}
	}
	return -1
}

// field returns the text that replaces a field such as "0.name[1]!r:>8".
func (f *filler) field(field string, deep int) string {
	s := f.s
	end := strings.IndexAny(field, "!:")
	if i := strings.IndexByte(field, '['); i >= 0 && i < end { // a key may contain ! and :
		if j := strings.IndexByte(field[i:], ']'); j >= 0 {
			if k := strings.IndexAny(field[i+j:], "!:"); k >= 0 {
				end = i + j + k
			} else {
				end = -1
			}
		}
	}
	name, rest := field, ""
	if end >= 0 {
		name, rest = field[:end], field[end:]
	}
	v := f.value(name)
	if conversion, ok := strings.CutPrefix(rest, "!"); ok {
		if len(conversion) == 0 || len(conversion) > 1 && conversion[1] != ':' {
			raise.At(s.line, "format: the field %q needs s, r or a after the !", field)
		}
		v, rest = f.converted(conversion[0], v), conversion[1:]
	}
	specification := strings.TrimPrefix(rest, ":")
	if specification != "" {
		specification = f.fill(specification, deep-1)
	}
	if m, ok := v.(markup); ok && f.markup {
		if specification != "" {
			raise.At(s.line, "format: markup allows no format specification, but it has %q", specification)
		}
		return string(m)
	} else if f.markup {
		return string(s.escaped(s.formatted(v, specification)))
	}
	return s.formatted(v, specification)
}

// converted applies the conversion !s, !r or !a.
func (f *filler) converted(conversion byte, v any) any {
	switch conversion {
	case 's':
		return f.s.text(v)
	case 'r':
		return f.s.reprOf(v)
	case 'a':
		return ascii(f.s.reprOf(v))
	}
	raise.At(f.s.line, "format: unknown conversion !%c, want !s, !r or !a", conversion)
	return nil
}

// value returns the value of a field: an argument, or an attribute or item of an argument.
func (f *filler) value(name string) any {
	s := f.s
	first := name
	if i := strings.IndexAny(name, ".["); i >= 0 {
		first = name[:i]
	}
	rest := name[len(first):]
	var v any
	n, err := strconv.Atoi(first)
	switch {
	case first == "" || err == nil && n >= 0:
		if first == "" {
			n = f.next
			f.next++
		} else {
			f.places = true
		}
		if f.places && f.next > 0 {
			raise.At(s.line, "format: numbered and unnumbered fields cannot be mixed")
		}
		if n >= len(f.list) {
			raise.At(s.line, "format: argument %d is missing", n)
		}
		v = f.list[n]
	default:
		var ok bool
		if v, ok = s.get(f.named, first); !ok {
			raise.At(s.line, "format: argument %s is missing", first)
		}
	}
	for rest != "" {
		var part string
		if rest[0] == '.' {
			part = rest[1:]
			if i := strings.IndexAny(part, ".["); i >= 0 {
				part = part[:i]
			}
			v, rest = s.attribute(v, part), rest[1+len(part):]
		} else {
			i := strings.IndexByte(rest, ']')
			if i < 0 || i+1 < len(rest) && rest[i+1] != '.' && rest[i+1] != '[' {
				raise.At(s.line, "format: %q has a [ without a ]", name)
			}
			part, rest = rest[1:i], rest[i+1:]
			if n, err := strconv.ParseInt(part, 10, 64); err == nil && n >= 0 {
				v = s.item(v, n)
			} else {
				v = s.item(v, part)
			}
		}
		if part == "" {
			raise.At(s.line, "format: %q has an empty name", name)
		}
	}
	return v
}

// parseSpec parses a format specification. `align` is the default alignment.
func (s *state) parseSpec(text string, align byte) spec {
	f := spec{fill: " ", align: align, precision: -1}
	rest := text
	_, n := utf8.DecodeRuneInString(rest)
	filled, aligned := false, false
	if len(rest) > n && strings.IndexByte("<>=^", rest[n]) >= 0 {
		f.fill, f.align, rest, filled, aligned = rest[:n], rest[n], rest[n+1:], true, true
	} else if rest != "" && strings.IndexByte("<>=^", rest[0]) >= 0 {
		f.align, rest, aligned = rest[0], rest[1:], true
	}
	if rest != "" && strings.IndexByte("+- ", rest[0]) >= 0 {
		f.sign, rest = rest[0], rest[1:]
	}
	rest, f.positive = strings.CutPrefix(rest, "z")
	rest, f.alternate = strings.CutPrefix(rest, "#")
	if strings.HasPrefix(rest, "0") && !filled {
		rest, f.fill = rest[1:], "0"
		if !aligned && align == '>' {
			f.align = '='
		}
	}
	f.width, rest = s.digits(rest)
	f.width = max(0, f.width)
	if rest != "" && strings.IndexByte(",_", rest[0]) >= 0 {
		f.group, rest = rest[0], rest[1:]
	}
	if after, ok := strings.CutPrefix(rest, "."); ok {
		if f.precision, rest = s.digits(after); f.precision < 0 {
			raise.At(s.line, "format: the precision is missing in %q", text)
		}
	}
	if len(rest) > 1 {
		raise.At(s.line, "format: unknown specification %q", text)
	}
	if rest != "" {
		f.verb = rest[0]
	}
	return f
}

// digits parses the digits at the start of text. It returns -1 if there are no digits.
func (s *state) digits(text string) (int64, string) {
	n := len(text) - len(strings.TrimLeft(text, "0123456789"))
	if n == 0 {
		return -1, text
	}
	v, err := strconv.ParseInt(text[:n], 10, 32)
	if err != nil {
		raise.At(s.line, "format: the number %s is too large", text[:n])
	}
	return v, text[n:]
}

// formatted formats a value with a format specification.
func (s *state) formatted(v any, text string) string {
	if text == "" {
		return s.text(v)
	}
	if value, ok := isText(v); ok {
		return s.formatText(value, s.parseSpec(text, '<'))
	}
	f := s.parseSpec(text, '>')
	n, isWhole := whole(v)
	switch {
	case isWhole && strings.IndexByte("\x00bcdoxXn", f.verb) >= 0:
		return s.formatWhole(n, f)
	case isNumber(v) && strings.IndexByte("\x00eEfFgGn%", f.verb) >= 0:
		return s.formatReal(s.real(v), f)
	}
	raise.At(s.line, "format: the format specification %q is not allowed for %s", text, typeName(v))
	return ""
}

func (s *state) formatText(v string, f spec) string {
	if f.verb != 0 && f.verb != 's' || f.sign != 0 || f.positive || f.alternate || f.group != 0 ||
		f.align == '=' {
		raise.At(s.line, "format: the format specification has an option that strings do not allow")
	}
	if r := []rune(v); f.precision >= 0 && int64(len(r)) > f.precision {
		v = string(r[:f.precision])
	}
	return s.aligned("", v, f)
}

// bases holds the base, the prefix and the group size for each integer format. The key is the type character.
var bases = map[byte]struct {
	base   int
	prefix string
	group  int
}{
	'b': {2, "0b", 4}, 'o': {8, "0o", 4}, 'x': {16, "0x", 4}, 'X': {16, "0X", 4}, 'd': {10, "", 3},
	'n': {10, "", 3}, 0: {10, "", 3},
}

func (s *state) formatWhole(n int64, f spec) string {
	if f.precision >= 0 || f.positive || f.group == ',' && strings.IndexByte("\x00d", f.verb) < 0 ||
		f.group == '_' && strings.IndexByte("cn", f.verb) >= 0 {
		raise.At(s.line, "format: the format specification has an option that whole numbers do not allow")
	}
	if f.verb == 'c' {
		if f.sign != 0 || f.alternate {
			raise.At(s.line, "format: the conversion c allows neither a sign nor #")
		}
		return s.aligned("", s.character(n), f)
	}
	base := bases[f.verb]
	text := strconv.FormatUint(magnitude(n), base.base)
	if f.verb == 'X' {
		text = strings.ToUpper(text)
	}
	sign := f.signOf(n < 0)
	if f.alternate {
		sign += base.prefix
	}
	return s.aligned(sign, s.grouped(text, "", len(sign), base.group, f), f)
}

// character returns the character with the code point n.
func (s *state) character(n int64) string {
	if n < 0 || n > utf8.MaxRune {
		raise.At(s.line, "format: %d is not a Unicode code point", n)
	}
	return string(rune(n))
}

func (s *state) formatReal(x float64, f spec) string {
	if f.group != 0 && f.verb == 'n' {
		raise.At(s.line, "format: the conversion n does not allow a thousands separator")
	}
	text := s.realDigits(math.Abs(x), f)
	negative := math.Signbit(x) && !math.IsNaN(x) && (!f.positive || strings.Trim(text, "0.%eE+-") != "")
	sign := f.signOf(negative)
	n := strings.IndexFunc(text, func(r rune) bool { return r < '0' || r > '9' })
	if n < 0 {
		n = len(text)
	}
	if n > 0 { // true unless the number is NaN or infinite
		text = s.grouped(text[:n], text[n:], len(sign), 3, f)
	}
	return s.aligned(sign, text, f)
}

// realDigits formats a float that is zero or positive.
func (s *state) realDigits(x float64, f spec) string {
	verb, precision := f.verb, f.precision
	s.spendWidth(max(precision, 0))
	percent := ""
	if verb == '%' {
		verb, x, percent = 'f', x*100, "%"
	}
	if precision < 0 {
		precision = 6
	}
	kind := verb | 0x20 // type character in lower case
	text := ""
	switch {
	case math.IsInf(x, 0):
		text = "inf"
	case math.IsNaN(x):
		text = "nan"
	case verb == 0 && f.precision < 0:
		text = float(x)
	case verb == 0:
		text = general(x, precision, f.alternate, true)
	case kind == 'g' || kind == 'n':
		text = general(x, precision, f.alternate, false)
	default:
		text = strconv.FormatFloat(x, kind, int(precision), 64)
		if f.alternate {
			text = withPoint(text)
		}
	}
	if verb == 'E' || verb == 'F' || verb == 'G' {
		text = strings.ToUpper(text)
	}
	return text + percent
}

// general formats a float as Python's type g: with `precision` significant digits, and with an exponent for
// very large or small numbers. If `keep` is set, at least one digit follows the decimal point, as in Python's
// str.
func general(x float64, precision int64, alternate, keep bool) string {
	precision = max(1, precision)
	text := strconv.FormatFloat(x, 'e', int(precision-1), 64)
	mantissa, exponent, _ := strings.Cut(text, "e")
	e, _ := strconv.ParseInt(exponent, 10, 64)
	most := precision
	if keep { // one digit must follow the decimal point
		most--
	}
	scientific := e < -4 || e >= most
	if !scientific {
		mantissa, exponent = strconv.FormatFloat(x, 'f', int(max(0, precision-1-e)), 64), ""
	}
	if alternate {
		mantissa = withPoint(mantissa)
	} else if strings.Contains(mantissa, ".") {
		mantissa = strings.TrimRight(strings.TrimRight(mantissa, "0"), ".")
	}
	if scientific {
		return mantissa + "e" + exponent
	}
	if keep && !strings.Contains(mantissa, ".") {
		mantissa += ".0"
	}
	return mantissa
}

// withPoint adds a decimal point to a number that has none.
func withPoint(text string) string {
	mantissa, exponent, scientific := strings.Cut(text, "e")
	if !strings.Contains(mantissa, ".") {
		mantissa += "."
	}
	if scientific {
		return mantissa + "e" + exponent
	}
	return mantissa
}

func (f *spec) signOf(negative bool) string {
	switch {
	case negative:
		return "-"
	case f.sign == '+' || f.sign == ' ':
		return string(f.sign)
	}
	return ""
}

// grouped inserts separators between the groups of digits in the integer part. If the number is padded with
// zeros, these zeros are grouped too. `before` is the width of the text before the digits.
func (s *state) grouped(whole, rest string, before, each int, f spec) string {
	if f.group == 0 {
		return whole + rest
	}
	if f.fill == "0" && f.align == '=' {
		s.spendWidth(f.width)
		n, missing := len(whole), int(f.width)-before-len(rest)
		for n+(n-1)/each < missing {
			n++
		}
		whole = strings.Repeat("0", n-len(whole)) + whole
	}
	var b strings.Builder
	for i := range len(whole) {
		if i > 0 && (len(whole)-i)%each == 0 {
			b.WriteByte(f.group)
		}
		b.WriteByte(whole[i])
	}
	return b.String() + rest
}

// aligned pads a text to its width. `sign` is written before the text.
func (s *state) aligned(sign, text string, f spec) string {
	fill := f.width - int64(pytext.Runes(sign)+pytext.Runes(text))
	if fill <= 0 {
		return sign + text
	}
	s.spendWidth(fill)
	left, right := int(fill), 0
	switch f.align {
	case '=':
		return sign + strings.Repeat(f.fill, left) + text
	case '<':
		left, right = 0, left
	case '^':
		left, right = left/2, left-left/2
	}
	return strings.Repeat(f.fill, left) + sign + text + strings.Repeat(f.fill, right)
}
