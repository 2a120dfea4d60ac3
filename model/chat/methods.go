package chat

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// method is a function that a value has by its type, as Python's have it. Those that change what they belong
// to are not there, as in Jinja's sandbox.
func (s *state) method(v any, name string) (callable, bool) {
	s.spend(len(name) / 16)
	switch v := v.(type) {
	case string:
		if m, ok := stringMethods[name]; ok {
			return func(s *state, a args) any {
				s.spend(len(v))
				return m(s, v, a)
			}, true
		}
	case *dict:
		if m, ok := dictMethods[name]; ok {
			return func(s *state, a args) any { return m(s, v, a) }, true
		}
	case *list:
		if m, ok := listMethods[name]; ok {
			return func(s *state, a args) any { return m(s, v, a) }, true
		}
	}
	return nil, false
}

const space = " \t\n\r\v\f\x1c\x1d\x1e\x1f\u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006" +
	"\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"

// cutset are the characters that a strip of v takes: white space where none are given.
func (s *state) cutset(v string, chars any) string {
	switch chars := chars.(type) {
	case nil, undefined:
		return space
	default:
		set := s.string(chars)
		s.spend(len(v) * len(set) / 16) // each character is looked for
		return set
	}
}

// stripped is a string without the characters of a cutset at its ends.
func stripped(trim func(v, cutset string) string) func(*state, string, args) any {
	return func(s *state, v string, a args) any { return trim(v, s.cutset(v, a.at(0))) }
}

// affix says whether a string has one of some beginnings or ends.
func affix(has func(s, part string) bool) func(*state, string, args) any {
	return func(s *state, v string, a args) any {
		if l, ok := a.at(0).(*list); ok {
			s.spend(len(l.items))
			return slices.ContainsFunc(l.items, func(part any) bool { return has(v, s.string(part)) })
		}
		return has(v, s.string(a.at(0)))
	}
}

// every says whether a string is not empty and all its characters are of a kind.
func every(is func(rune) bool) func(*state, string, args) any {
	return func(_ *state, v string, _ args) any {
		return v != "" && strings.IndexFunc(v, func(r rune) bool { return !is(r) }) < 0
	}
}

// cased says whether a string has letters with a case, and all of one.
func cased(v string, fold func(string) string) bool {
	return v == fold(v) && strings.ToLower(v) != strings.ToUpper(v)
}

var stringMethods map[string]func(*state, string, args) any

func init() { // some of them look others up
	stringMethods = map[string]func(*state, string, args) any{
		"strip":      stripped(strings.Trim),
		"lstrip":     stripped(strings.TrimLeft),
		"rstrip":     stripped(strings.TrimRight),
		"upper":      func(_ *state, v string, _ args) any { return strings.ToUpper(v) },
		"lower":      func(_ *state, v string, _ args) any { return strings.ToLower(v) },
		"title":      func(_ *state, v string, _ args) any { return title(v) },
		"capitalize": func(_ *state, v string, _ args) any { return capitalize(v) },
		"startswith": affix(strings.HasPrefix), "endswith": affix(strings.HasSuffix),
		"removeprefix": func(s *state, v string, a args) any {
			return strings.TrimPrefix(v, s.string(a.at(0)))
		},
		"removesuffix": func(s *state, v string, a args) any {
			return strings.TrimSuffix(v, s.string(a.at(0)))
		},
		"split":      func(s *state, v string, a args) any { return s.split(v, a, false) },
		"rsplit":     func(s *state, v string, a args) any { return s.split(v, a, true) },
		"splitlines": splitLines,
		"partition": func(s *state, v string, a args) any {
			before, after, found := strings.Cut(v, s.string(a.at(0)))
			if !found {
				return &list{[]any{v, "", ""}, true}
			}
			return &list{[]any{before, a.at(0), after}, true}
		},
		"replace": func(s *state, v string, a args) any { return s.replace(v, a) },
		"find": func(s *state, v string, a args) any {
			return place(v, strings.Index(v, s.string(a.at(0))))
		},
		"rfind": func(s *state, v string, a args) any {
			return place(v, strings.LastIndex(v, s.string(a.at(0))))
		},
		"index": func(s *state, v string, a args) any {
			i := strings.Index(v, s.string(a.at(0)))
			if i < 0 {
				fail(s.line, "the string has no such part")
			}
			return place(v, i)
		},
		"count":   func(s *state, v string, a args) any { return int64(strings.Count(v, s.string(a.at(0)))) },
		"join":    func(s *state, v string, a args) any { return join(s, a.at(0), args{list: []any{v}}) },
		"format":  func(s *state, v string, a args) any { return s.fill(v, a) },
		"isdigit": every(unicode.IsDigit), "isalpha": every(unicode.IsLetter),
		"isspace":   every(unicode.IsSpace),
		"isnumeric": every(unicode.IsNumber),
		"isalnum":   every(func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }),
		"isupper":   func(_ *state, v string, _ args) any { return cased(v, strings.ToUpper) },
		"islower":   func(_ *state, v string, _ args) any { return cased(v, strings.ToLower) },
	}
}

var dictMethods = map[string]func(*state, *dict, args) any{
	"get": func(s *state, d *dict, a args) any {
		if v, ok := s.get(d, a.at(0)); ok {
			return v
		}
		return a.or(1, "default", nil)
	},
	"items":  func(s *state, d *dict, a args) any { return items(s, d, a) },
	"keys":   func(s *state, d *dict, _ args) any { return s.copied(d.keys) },
	"values": func(s *state, d *dict, _ args) any { return s.copied(d.values) },
}

var listMethods = map[string]func(*state, *list, args) any{
	"count": func(s *state, l *list, a args) any {
		n := int64(0)
		for _, item := range l.items {
			s.spend(1)
			if s.equal(item, a.at(0)) {
				n++
			}
		}
		return n
	},
	"index": func(s *state, l *list, a args) any {
		i := s.find(l.items, a.at(0))
		if i < 0 {
			fail(s.line, "the list has no such item")
		}
		return int64(i)
	},
}

// place is where a byte is in characters, -1 where there is none.
func place(v string, at int) int64 {
	if at < 0 {
		return -1
	}
	return int64(utf8.RuneCountInString(v[:at]))
}

// title has each word begin with a capital.
func title(v string) string {
	word := false
	return strings.Map(func(r rune) rune {
		was := word
		if word = unicode.IsLetter(r); was {
			return unicode.ToLower(r)
		}
		return unicode.ToTitle(r)
	}, v)
}

func capitalize(v string) string {
	_, n := utf8.DecodeRuneInString(v)
	return strings.ToUpper(v[:n]) + strings.ToLower(v[n:])
}

// replace is a string with one part in the place of another, so many times at most.
func (s *state) replace(v string, a args) any {
	from, to := s.string(a.or(0, "old", nil)), s.string(a.or(1, "new", nil))
	n := int64(-1)
	if most, ok := whole(a.or(2, "count", nil)); ok {
		n = most
	}
	s.spend(len(v) + min(len(v)+1, strings.Count(v, from))*len(to))
	return strings.Replace(v, from, to, int(n))
}

// split cuts a string at a separator, or at white space; into so many parts and one at most, from the right
// where that is said.
func (s *state) split(v string, a args, right bool) any {
	most := int64(-1)
	if n, ok := whole(a.or(1, "maxsplit", nil)); ok {
		most = n
	}
	parts := []any{}
	separator, cut := a.or(0, "sep", nil).(string)
	if cut && separator == "" {
		fail(s.line, "split: the separator is empty")
	}
	for rest := v; ; {
		if !cut {
			if rest = strings.Trim(rest, space); rest == "" {
				break
			}
		}
		from, to := -1, -1
		switch {
		case most >= 0 && int64(len(parts)) >= most:
		case cut && right:
			from = strings.LastIndex(rest, separator)
			to = from + len(separator)
		case cut:
			from = strings.Index(rest, separator)
			to = from + len(separator)
		case right:
			if from = strings.LastIndexAny(rest, space); from >= 0 {
				_, n := utf8.DecodeRuneInString(rest[from:])
				to = from + n
			}
		default:
			if from = strings.IndexAny(rest, space); from >= 0 {
				_, n := utf8.DecodeRuneInString(rest[from:])
				to = from + n
			}
		}
		s.spend(16)
		if from < 0 {
			parts = append(parts, rest)
			break
		}
		if right {
			parts, rest = append(parts, rest[to:]), rest[:from]
		} else {
			parts, rest = append(parts, rest[:from]), rest[to:]
		}
	}
	if right {
		slices.Reverse(parts)
	}
	return &list{items: parts}
}

func splitLines(s *state, v string, _ args) any {
	l := &list{}
	for line := range strings.Lines(v) {
		l.items = append(l.items, strings.TrimSuffix(line, "\n"))
	}
	s.spend(16 * len(l.items))
	return l
}

// format is Python's %: %s, %d and %f with widths and precisions.
func (s *state) format(v string, with any) any {
	given := []any{with}
	if l, ok := with.(*list); ok && l.tuple {
		given = l.items
	}
	s.spend(len(v))
	var b strings.Builder
	for rest := v; rest != ""; {
		text, spec, found := strings.Cut(rest, "%")
		b.WriteString(text)
		if !found {
			break
		}
		n := strings.IndexFunc(spec, func(r rune) bool { return !strings.ContainsRune("0123456789.-+ ", r) })
		if n < 0 {
			fail(s.line, "the format %q has no end", v)
		}
		verb := spec[n]
		rest = spec[n+1:]
		if verb == '%' {
			b.WriteString("%")
			continue
		}
		if len(given) == 0 {
			fail(s.line, "the format %q wants more values", v)
		}
		text = s.formatted(spec[:n], verb, given[0])
		s.spend(len(text))
		b.WriteString(text)
		given = given[1:]
	}
	return b.String()
}

// formatted is one value by a format's width and precision.
func (s *state) formatted(size string, verb byte, v any) string {
	width, precision, hasPrecision := strings.Cut(size, ".")
	digits, _ := strconv.Atoi(precision)
	if !hasPrecision {
		digits = 6
	}
	text := ""
	switch verb {
	case 's':
		text = s.text(v)
	case 'd', 'i':
		text = strconv.FormatInt(int64(s.real(v)), 10)
	case 'f':
		text = strconv.FormatFloat(s.real(v), 'f', min(digits, 100), 64)
	default:
		fail(s.line, "a format has %%%c, want %%s, %%d or %%f", verb)
	}
	n, _ := strconv.Atoi(strings.TrimLeft(width, "-0+ "))
	fill := max(0, min(n, 1000)-utf8.RuneCountInString(text))
	switch {
	case strings.HasPrefix(width, "-"):
		return text + strings.Repeat(" ", fill)
	case strings.HasPrefix(width, "0") && verb != 's':
		return strings.Repeat("0", fill) + text
	}
	return strings.Repeat(" ", fill) + text
}

// fill is Python's str.format with {}, {0} and {name}.
func (s *state) fill(v string, a args) any {
	var b strings.Builder
	next := 0
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
		name, after, found := strings.Cut(rest[i+1:], "}")
		if !found {
			fail(s.line, "the format %q has a { without its end", v)
		}
		rest = after
		var value any
		n, err := strconv.Atoi(name)
		switch {
		case name == "":
			value = a.at(next)
			next++
		case err == nil && n >= 0:
			value = a.at(n)
		default:
			value = a.named[name]
		}
		b.WriteString(s.text(value))
	}
	return b.String()
}

// newRange is range: whole numbers from the first up to the last, which is not one of them.
func newRange(s *state, a args) any {
	from, to, step := int64(0), s.whole(a.at(0)), int64(1)
	if len(a.list) > 1 {
		from, to = to, s.whole(a.list[1])
	}
	if len(a.list) > 2 {
		step = s.whole(a.list[2])
	}
	if step == 0 {
		fail(s.line, "range: a step of 0")
	}
	l := &list{}
	for i := from; step > 0 && i < to || step < 0 && i > to; i += step {
		if len(l.items) == mostInRange {
			fail(s.line, "range: more than %d numbers", mostInRange)
		}
		l.items = append(l.items, i)
	}
	s.spend(16 * len(l.items))
	return l
}

func newDict(s *state, a args) any {
	d := &dict{}
	if from, ok := a.at(0).(*dict); ok {
		for i, key := range from.keys {
			s.set(d, key, from.values[i])
		}
	}
	for _, name := range sortedNames(a.named) {
		s.set(d, name, a.named[name])
	}
	s.spend(16 * len(d.keys))
	return d
}

func newNamespace(s *state, a args) any { return &namespace{*newDict(s, a).(*dict)} }
