package chat

import (
	"math"
	"strconv"
	"strings"
	"unicode"

	"gpuscope/text/chat/internal/pytext"
	"gpuscope/text/chat/internal/raise"
)

// filters holds the filters by name. This file implements the filters for single values. The filters for
// sequences are in series.go.
var filters map[string]builtin

func init() { // not in the declaration, because some filters refer to this variable
	filters = builtins(append(seriesFilters(), []row{
		{"trim", "value, chars=None", func(s *state, a []any) any {
			return s.sameKind(a[0], strings.Trim(s.text(a[0]), s.cutset(s.text(a[0]), a[1])))
		}},
		changed("upper", pytext.Upper), changed("lower", pytext.Lower),
		{"title", "s", func(s *state, a []any) any { return headline(s.text(a[0])) }},
		changed("capitalize", pytext.Capitalize),
		changed("string", func(v string) string { return v }),
		{"center", "value, width=80", func(s *state, a []any) any {
			return s.sameKind(a[0], s.padded(s.text(a[0]), s.whole(a[1]), " ", middle))
		}},
		{"safe", "value", func(s *state, a []any) any { return markup(s.text(a[0])) }},
		{"escape e", "s, /", func(s *state, a []any) any { return s.escaped(a[0]) }},
		{"forceescape", "value", func(s *state, a []any) any { return s.escaped(s.text(a[0])) }},
		{"replace", "s, old, new, count=None", func(s *state, a []any) any {
			most := int64(-1)
			if a[3] != nil {
				most = s.whole(a[3])
			}
			return s.replace(s.text(a[0]), s.text(a[1]), s.text(a[2]), most)
		}},
		{"default d", "value, default_value='', boolean=False", func(_ *state, a []any) any {
			if isA[undefined](a[0]) || truth(a[2]) && !truth(a[0]) {
				return a[1]
			}
			return a[0]
		}},
		{"indent", "s, width=4, first=False, blank=False", indent},
		{"truncate", "s, length=255, killwords=False, end='...', leeway=None", truncate},
		{"wordcount", "s", func(s *state, a []any) any {
			words := strings.FieldsFunc(s.text(a[0]), func(r rune) bool {
				return r != '_' && !pytext.IsAlnum(r)
			})
			return int64(len(words))
		}},
		{"format", "value, *args, **kwargs", func(s *state, a []any) any {
			positional, named := a[1].(*list), a[2].(*dict)
			if len(positional.items) > 0 && len(named.keys) > 0 {
				raise.At(s.line, "format: positional and named arguments cannot be mixed")
			}
			with := any(positional)
			if len(named.keys) > 0 {
				with = named
			}
			return s.printf(a[0], with)
		}},
		{"tojson", "x, ensure_ascii=False, indent=None, separators=None, sort_keys=False", tojson},
		{"abs", "x, /", func(s *state, a []any) any {
			if n, ok := whole(a[0]); ok {
				if n < 0 {
					return s.negative(n)
				}
				return n
			}
			return math.Abs(s.real(a[0]))
		}},
		{"int", "value, default=0, base=10", toInt},
		{"float", "value, default=0.0", toFloat},
		{"round", "value, precision=0, method='common'", round},
		{"filesizeformat", "value, binary=False", fileSize},
		{"attr", "obj, name", func(s *state, a []any) any { return s.attributeOnly(a[0], s.string(a[1])) }},
		{"urlencode", "value", urlEncode},
	}...))
}

// changed returns the table row of a filter that converts a string with the function `do`. The result is
// markup if the input is markup.
func changed(names string, do func(string) string) row {
	return row{names, "s", func(s *state, a []any) any { return s.sameKind(a[0], do(s.text(a[0]))) }}
}

// sameKind converts the result of a filter to the kind of its input: to markup if the input is markup,
// otherwise to a plain string. `of` is the input, and `text` is the result.
func (s *state) sameKind(of any, text string) any {
	s.spend(len(text))
	if isA[markup](of) {
		return markup(text)
	}
	return text
}

// headline implements the filter title, which makes the first letter of each word a capital. Words are
// separated by spaces, hyphens and opening brackets.
func headline(v string) string {
	var b strings.Builder
	for v != "" {
		word := strings.IndexFunc(v, func(r rune) bool {
			return strings.ContainsRune(pytext.Space+"-({[<", r)
		})
		if word == 0 {
			word = len(v) - len(strings.TrimLeft(v, pytext.Space+"-({[<"))
		} else if word < 0 {
			word = len(v)
		}
		b.WriteString(capitalizeUpper(v[:word]))
		v = v[word:]
	}
	return b.String()
}

// capitalizeUpper returns a string with its first character in upper case and the rest in lower case.
func capitalizeUpper(v string) string {
	for i := range v {
		if i > 0 {
			return pytext.Upper(v[:i]) + pytext.Lower(v[i:])
		}
	}
	return pytext.Upper(v)
}

func toInt(s *state, a []any) any {
	if n, ok := whole(a[0]); ok {
		return n
	}
	x, ok := a[0].(float64)
	if text, isString := isText(a[0]); isString {
		s.spend(len(text))
		base := s.whole(a[2])
		if base == 0 || base >= 2 && base <= 36 {
			if n, ok := s.parseWhole(text, int(base)); ok {
				return n
			}
		}
		x, ok = parseReal(text)
	} else if isA[undefined](a[0]) {
		s.real(a[0])
	}
	if !ok || math.IsNaN(x) || math.IsInf(x, 0) {
		if isA[float64](a[0]) && math.IsInf(x, 0) {
			s.truncated(x)
		}
		return a[1]
	}
	return s.truncated(x)
}

func toFloat(s *state, a []any) any {
	if text, ok := isText(a[0]); ok {
		s.spend(len(text))
		if x, ok := parseReal(text); ok {
			return x
		}
		return a[1]
	}
	if x, ok := real(a[0]); ok {
		return x
	}
	if isA[undefined](a[0]) {
		s.real(a[0])
	}
	return a[1]
}

func round(s *state, a []any) any {
	method, digits := s.string(a[2]), s.whole(a[1])
	digits = max(-400, min(digits, 400))
	if method == "common" {
		if n, ok := whole(a[0]); ok {
			return s.roundWhole(n, digits)
		}
		return s.roundReal(s.real(a[0]), digits)
	}
	to, ok := map[string]func(float64) float64{"ceil": math.Ceil, "floor": math.Floor}[method]
	if !ok {
		raise.At(s.line, "round: unknown method %q", method)
	}
	scale := math.Pow(10, float64(digits))
	return (to(s.real(a[0])*scale) + 0) / scale // + 0 turns -0 into 0, as in Python
}

// roundWhole rounds to tens, hundreds and so on. A number halfway between two multiples is rounded to the
// even multiple.
func (s *state) roundWhole(n, digits int64) any {
	unit, fits := power(10, max(0, -digits))
	switch {
	case digits >= 0:
		return n
	case !fits:
		return int64(0)
	}
	rest := n % unit
	if rest < 0 {
		rest += unit
	}
	down := s.wholes("-", n, rest).(int64)
	if twice := magnitude(2 * rest); twice > magnitude(unit) || rest == unit-rest && down/unit%2 != 0 {
		return s.wholes("+", down, unit)
	}
	return down
}

// roundReal rounds to a number of decimal places.
func (s *state) roundReal(x float64, digits int64) any {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return x
	}
	if digits < 0 {
		scale := math.Pow(10, float64(-digits))
		if math.IsInf(scale, 0) {
			return math.Copysign(0, x)
		}
		return math.RoundToEven(x/scale) * scale
	}
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'f', int(digits), 64), 64)
	return rounded
}

func indent(s *state, a []any) any {
	text := s.string(a[0])
	by, ok := isText(a[1])
	if !ok {
		by = s.repeat(" ", s.whole(a[1])).(string)
	}
	all := pytext.Lines(text+"\n", false)
	var b strings.Builder
	for i, line := range all {
		if i > 0 {
			b.WriteString("\n")
		}
		if i == 0 && truth(a[2]) || i > 0 && (line != "" || truth(a[3])) {
			s.spend(len(by))
			b.WriteString(by)
		}
		b.WriteString(line.(string))
	}
	return s.sameKind(a[0], b.String())
}

func truncate(s *state, a []any) any {
	end, most, leeway := s.string(a[3]), s.whole(a[1]), int64(5)
	if a[4] != nil {
		leeway = s.whole(a[4])
	}
	if most < int64(pytext.Runes(end)) || leeway < 0 {
		raise.At(s.line, "truncate: the length %d is shorter than the end text, or the leeway %d is negative",
			most, leeway)
	}
	if _, ok := isText(a[0]); !ok && int64(len(s.sized(a[0])))-leeway <= most {
		return a[0] // only the length of a[0] matters
	}
	text := []rune(s.string(a[0]))
	s.spend(4 * len(text))
	if int64(len(text))-leeway <= most {
		return a[0]
	}
	cut := string(text[:int(most)-pytext.Runes(end)])
	if !truth(a[2]) {
		if i := strings.LastIndex(cut, " "); i >= 0 {
			cut = cut[:i]
		}
	}
	return s.calculate("+", s.sameKind(a[0], cut), a[3])
}

// sizes holds the units of filesizeformat: first the decimal units, then the binary units.
var sizes = [2][]string{
	{"kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"},
	{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"},
}

func fileSize(s *state, a []any) any {
	x, base, units := s.realOrText(a[0]), 1000.0, sizes[0]
	if truth(a[1]) {
		base, units = 1024, sizes[1]
	}
	switch {
	case x == 1:
		return "1 Byte"
	case x < base:
		return strconv.FormatInt(s.truncated(x), 10) + " Bytes"
	}
	unit := base * base
	i := 0
	for ; i+1 < len(units) && x >= unit; i++ {
		unit *= base
	}
	return strconv.FormatFloat(base*x/unit, 'f', 1, 64) + " " + units[i]
}

// realOrText returns a number, or the number in a string.
func (s *state) realOrText(v any) float64 {
	if text, ok := isText(v); ok {
		if x, ok := parseReal(text); ok {
			return x
		}
	}
	return s.real(v)
}

func urlEncode(s *state, a []any) any {
	_, text := isText(a[0])
	if text || !isIterable(a[0]) {
		return s.urlQuoted(a[0], "/")
	}
	pairs := s.items(a[0])
	if d, ok := a[0].(*dict); ok {
		pairs = d.pairs()
	}
	var parts []string
	for _, pair := range pairs {
		both := s.items(pair)
		if len(both) != 2 {
			raise.At(s.line, "urlencode: each item must be a pair of a key and a value")
		}
		parts = append(parts, s.urlQuoted(both[0], "+")+"="+s.urlQuoted(both[1], "+"))
	}
	return strings.Join(parts, "&")
}

// urlQuoted returns a value with URL escapes. If `keep` is "/", slashes are not escaped. If `keep` is "+", a
// space is written as +.
func (s *state) urlQuoted(v any, keep string) string {
	var b strings.Builder
	text := s.text(v)
	s.spend(3 * len(text))
	for i := range len(text) {
		switch c := text[i]; {
		case c < 0x80 && (unicode.IsLetter(rune(c)) || unicode.IsDigit(rune(c))),
			strings.IndexByte("_.-~", c) >= 0, keep == "/" && c == '/':
			b.WriteByte(c)
		case keep == "+" && c == ' ':
			b.WriteByte('+')
		default:
			b.WriteString("%" + strings.ToUpper(hex(rune(c), 2)))
		}
	}
	return b.String()
}
