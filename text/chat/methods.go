package chat

import (
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"gpuscope/text/chat/internal/pytext"
	"gpuscope/text/chat/internal/raise"
)

// This file implements the methods of Python's types, except methods that modify a value. Jinja's sandbox
// forbids those methods too.

// method returns a function that calls a method of v.
func (s *state) method(v any, name string) (*function, bool) {
	s.spend(len(name) / 16)
	var table map[string]builtin
	switch v := v.(type) {
	case string:
		table = stringMethods
	case markup:
		if m, ok := stringMethods[name]; ok {
			return s.markupMethod(m, v), true
		}
	case *dict:
		table = dictMethods
	case *list:
		table = sequenceMethods(v)
	case float64:
		table = floatMethods
	}
	m, ok := table[name]
	return method(m, v), ok
}

// escapedArguments lists the methods of markup that escape one of their arguments. It maps the name of a
// method to the index of this argument.
var escapedArguments = map[string]int{"replace": 2, "ljust": 2, "rjust": 2, "center": 2}

// markupMethod returns a string method for the receiver v. Its result is markup.
func (s *state) markupMethod(m builtin, v markup) *function {
	return method(builtin{m.signature, func(s *state, a []any) any {
		switch at := escapedArguments[m.name]; {
		case m.name == "format", m.name == "format_map": // these escape each value after formatting it
			return marked(m.do(s, a))
		case m.name == "join":
			a[1] = s.iterator(a[1], func(v any) (any, bool) { return s.escaped(v), true })
		case at > 0:
			a[at] = s.escaped(a[at])
		}
		a[0] = string(v)
		return marked(m.do(s, a))
	}}, v)
}

// marked converts strings to markup.
func marked(v any) any {
	switch v := v.(type) {
	case string:
		return markup(v)
	case *list:
		out := &list{items: slices.Clone(v.items), Kind: v.Kind}
		for i := range out.items {
			out.items[i] = marked(out.items[i])
		}
		return out
	}
	return v
}

// escaped converts a value to markup. Special characters of HTML are escaped unless the value is markup.
func (s *state) escaped(v any) markup {
	if m, ok := v.(markup); ok {
		return m
	}
	text := s.text(v)
	s.spend(5 * len(text))
	return markup(htmlEscapes.Replace(text))
}

// ofText returns the implementation of a builtin whose only argument is a string. The builtin returns
// do(string).
func ofText[T any](do func(string) T) func(*state, []any) any {
	return func(s *state, a []any) any {
		text := a[0].(string)
		s.spend(len(text))
		return do(text)
	}
}

// every returns a builtin for strings. The builtin reports whether the string is not empty and is(c) returns
// true for each character c.
func every(is func(rune) bool) func(*state, []any) any {
	return ofText(func(v string) bool {
		return v != "" && strings.IndexFunc(v, func(r rune) bool { return !is(r) }) < 0
	})
}

// cutset returns the set of characters to strip from v. The default is white space.
func (s *state) cutset(v string, chars any) string {
	if chars == nil {
		return pytext.Space
	}
	set := s.string(chars)
	s.spend(len(v) * len(set) / 16) // the work to look up each character of v in the set
	return set
}

// stripped returns the table row of a method that removes the characters of a set from the ends of a string.
func stripped(names string, trim func(v, cutset string) string) row {
	return row{names, "self, chars=None, /", func(s *state, a []any) any {
		v := a[0].(string)
		s.spend(len(v))
		return trim(v, s.cutset(v, a[1]))
	}}
}

// affix returns the table row of startswith or endswith. Their argument may be a tuple of alternatives.
func affix(names string, has func(s, part string) bool) row {
	return row{names, "self, prefix, start=None, end=None, /", func(s *state, a []any) any {
		v, _, ok := s.window(a[0].(string), a[2], a[3])
		parts := []any{a[1]}
		if l, tuple := a[1].(*list); tuple && sequences[l.Kind].like == aTuple {
			parts = l.items
		}
		s.spend(len(v) + len(parts))
		for _, part := range parts {
			if part := s.string(part); ok && has(v, part) {
				return true
			}
		}
		return false
	}}
}

// window returns the part of a string between two character positions, and the number of characters before
// this part. A position of nil means the start or the end of the string. The bool is false if start is after
// end.
func (s *state) window(v string, start, end any) (string, int, bool) {
	s.spend(len(v) / 16)
	if start == nil && end == nil {
		return v, 0, true
	}
	n := pytext.Runes(v)
	place := func(v any, otherwise int) int {
		if v == nil {
			return otherwise
		}
		i := s.whole(v)
		if i < 0 {
			i += int64(n)
		}
		return int(max(0, min(i, int64(n)+1)))
	}
	from, to := place(start, 0), min(place(end, n), n)
	if from > to {
		return "", 0, false
	}
	all := []rune(v)
	s.spend(4 * len(v))
	return string(all[from:to]), from, true
}

// located returns the table row of a method like find or index. For a missing substring, the method raises an
// error if `must` is true, or returns -1.
func located(names string, index func(s, part string) int, must bool) row {
	return row{names, "self, sub, start=None, end=None, /", func(s *state, a []any) any {
		v, before, ok := s.window(a[0].(string), a[2], a[3])
		part := s.string(a[1])
		s.spend(len(v))
		i := -1
		if ok {
			i = index(v, part)
		}
		if i >= 0 {
			return int64(before + pytext.Runes(v[:i]))
		}
		if must {
			raise.At(s.line, "%s: substring not found", names)
		}
		return int64(-1)
	}}
}

// affixed returns the table row of removeprefix or removesuffix.
func affixed(names string, trim func(s, part string) string) row {
	return row{names, "self, affix, /", func(s *state, a []any) any {
		return trim(a[0].(string), s.string(a[1]))
	}}
}

// divided returns the table row of partition or rpartition. These methods return the text before the
// separator, the separator, and the text after the separator.
func divided(names string, index func(s, part string) int, missing func(v string) *list) row {
	return row{names, "self, sep, /", func(s *state, a []any) any {
		v, sep := a[0].(string), s.string(a[1])
		s.spend(len(v))
		if sep == "" {
			raise.At(s.line, "%s: the separator is empty", names)
		}
		i := index(v, sep)
		if i < 0 {
			return missing(v)
		}
		return newTuple(v[:i], sep, v[i+len(sep):])
	}}
}

// justified returns the table row of a method that pads a string to a width.
func justified(names string, sides func(string, int) (int, int)) row {
	return row{names, "self, width, fillchar=' ', /", func(s *state, a []any) any {
		v, fill := a[0].(string), s.string(a[2])
		if pytext.Runes(fill) != 1 {
			raise.At(s.line, "%s: the fill text %q must be exactly one character", names, fill)
		}
		return s.padded(v, s.whole(a[1]), fill, sides)
	}}
}

func (s *state) padded(v string, width int64, fill string, sides func(string, int) (int, int)) string {
	n := width - int64(pytext.Runes(v))
	if n <= 0 {
		return v
	}
	s.spendWidth(n)
	left, right := sides(v, int(n))
	return strings.Repeat(fill, left) + v + strings.Repeat(fill, right)
}

// spendWidth counts n characters as work. It cannot overflow.
func (s *state) spendWidth(n int64) { s.spend(int(max(0, min(n, int64(s.most)+1))) * utf8.UTFMax) }

func leftSide(_ string, n int) (int, int)  { return 0, n }
func rightSide(_ string, n int) (int, int) { return n, 0 }
func middle(v string, n int) (int, int) { // if n is odd, Python decides which side gets more
	left := n / 2
	if n%2 == 1 && (pytext.Runes(v)+n)%2 == 1 {
		left++
	}
	return left, n - left
}

var stringMethods map[string]builtin

func init() { // not in the declaration, because some methods refer to this variable
	stringMethods = builtins([]row{
		stripped("strip", strings.Trim), stripped("lstrip", strings.TrimLeft),
		stripped("rstrip", strings.TrimRight),
		{"upper", "self, /", ofText(pytext.Upper)},
		{"lower", "self, /", ofText(pytext.Lower)},
		{"title", "self, /", ofText(pytext.Title)},
		{"capitalize", "self, /", ofText(pytext.Capitalize)},
		{"swapcase", "self, /", ofText(pytext.SwapCase)},
		{"casefold", "self, /", ofText(pytext.Fold)},
		affix("startswith", strings.HasPrefix), affix("endswith", strings.HasSuffix),
		affixed("removeprefix", strings.TrimPrefix), affixed("removesuffix", strings.TrimSuffix),
		{"split", "self, sep=None, maxsplit=-1", func(s *state, a []any) any { return s.split(a, false) }},
		{"rsplit", "self, sep=None, maxsplit=-1", func(s *state, a []any) any { return s.split(a, true) }},
		{"splitlines", "self, keepends=False", func(s *state, a []any) any {
			s.spend(len(a[0].(string)))
			return s.copied(pytext.Lines(a[0].(string), truth(a[1])))
		}},
		divided("partition", strings.Index, func(v string) *list { return newTuple(v, "", "") }),
		divided("rpartition", strings.LastIndex, func(v string) *list { return newTuple("", "", v) }),
		{"replace", "self, old, new, count=-1, /", func(s *state, a []any) any {
			return s.replace(a[0].(string), s.string(a[1]), s.string(a[2]), s.whole(a[3]))
		}},
		located("find", strings.Index, false), located("rfind", strings.LastIndex, false),
		located("index", strings.Index, true), located("rindex", strings.LastIndex, true),
		{"count", "self, sub, start=None, end=None, /", func(s *state, a []any) any {
			v, _, ok := s.window(a[0].(string), a[2], a[3])
			s.spend(len(v))
			n := strings.Count(v, s.string(a[1]))
			if !ok {
				n = 0
			}
			return int64(n)
		}},
		{"join", "self, iterable, /", func(s *state, a []any) any {
			items := s.items(a[1]) // an iterator can be read only once
			for _, item := range items {
				s.string(item)
			}
			return s.joined(a[0].(string), newList(items...))
		}},
		{"format", "self, /, *args, **kwargs", func(s *state, a []any) any {
			return s.fill(a[0], a[1].(*list).items, a[2].(*dict))
		}},
		{"format_map", "self, mapping, /", func(s *state, a []any) any {
			d, ok := a[1].(*dict)
			if !ok {
				raise.At(s.line, "format_map: the argument must be a dict, not %s", typeName(a[1]))
			}
			return s.fill(a[0], nil, d)
		}},
		justified("ljust", leftSide), justified("rjust", rightSide), justified("center", middle),
		{"zfill", "self, width, /", func(s *state, a []any) any {
			v, sign := a[0].(string), ""
			if v != "" && strings.Contains("+-", v[:1]) {
				v, sign = v[1:], v[:1]
			}
			width := s.whole(a[1])
			return sign + s.padded(v, max(width, 1)-int64(len(sign)), "0", rightSide)
		}},
		{"expandtabs", "self, tabsize=8", func(s *state, a []any) any {
			return s.expandTabs(a[0].(string), s.whole(a[1]))
		}},
		{"isdigit", "self, /", every(pytext.IsDigit)},
		{"isdecimal", "self, /", every(pytext.IsDecimal)},
		{"isnumeric", "self, /", every(pytext.IsNumeric)},
		{"isalpha", "self, /", every(unicode.IsLetter)},
		{"isalnum", "self, /", every(pytext.IsAlnum)},
		{"isspace", "self, /", every(pytext.IsSpace)},
		{"isascii", "self, /", ofText(func(v string) bool {
			return strings.IndexFunc(v, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
		})},
		{"isprintable", "self, /", ofText(func(v string) bool {
			return strings.IndexFunc(v, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
		})},
		{"isidentifier", "self, /", ofText(pytext.IsIdentifier)},
		{"istitle", "self, /", ofText(pytext.IsTitle)},
		{"isupper", "self, /", ofText(func(v string) bool { return cased(v, pytext.Upper) })},
		{"islower", "self, /", ofText(func(v string) bool { return cased(v, pytext.Lower) })},
	})
}

var dictMethods, tupleMethods, listMethods, floatMethods map[string]builtin

func init() {
	dictMethods = builtins([]row{
		{"get", "self, key, default=None, /", func(s *state, a []any) any {
			s.hashable(a[1])
			if v, ok := s.get(a[0].(*dict), a[1]); ok {
				return v
			}
			return a[2]
		}},
		{"items", "self, /", func(s *state, a []any) any {
			s.spend(32 * len(a[0].(*dict).keys))
			return &list{items: a[0].(*dict).pairs(), Kind: itemsView}
		}},
		{"keys", "self, /", func(_ *state, a []any) any {
			return &list{items: a[0].(*dict).keys, Kind: keysView}
		}},
		{"values", "self, /", func(_ *state, a []any) any {
			return &list{items: a[0].(*dict).values, Kind: valuesView}
		}},
		{"copy", "self, /", func(_ *state, a []any) any { return a[0] }},
	})

	tupleMethods = builtins([]row{
		{"count", "self, value, /", func(s *state, a []any) any {
			n := int64(0)
			for _, item := range a[0].(*list).items {
				s.spend(1)
				if s.equal(item, a[1]) {
					n++
				}
			}
			return n
		}},
		{"index", "self, value, start=0, stop=9223372036854775807, /", func(s *state, a []any) any {
			items := a[0].(*list).items
			n := int64(len(items))
			place := func(i int64) int64 {
				if i < 0 {
					i += n
				}
				return max(0, min(i, n))
			}
			from, to := place(s.whole(a[2])), place(s.whole(a[3]))
			i := s.find(items[from:max(from, to)], a[1])
			if i < 0 {
				raise.At(s.line, "index: item not found")
			}
			return from + int64(i)
		}},
	})

	listMethods = maps.Clone(tupleMethods)
	maps.Copy(listMethods, builtins([]row{
		{"copy", "self, /", func(s *state, a []any) any { return s.copied(a[0].(*list).items) }},
	}))
	floatMethods = builtins([]row{
		{"is_integer", "self, /", func(_ *state, a []any) any {
			return a[0].(float64) == math.Trunc(a[0].(float64)) && !math.IsInf(a[0].(float64), 0)
		}},
	})
}

// sequenceMethods returns the methods of a list or another sequence type.
func sequenceMethods(l *list) map[string]builtin {
	switch {
	case l.Kind == aList:
		return listMethods
	case sequences[l.Kind].indexed:
		return tupleMethods
	}
	return nil
}

// replace replaces up to `most` occurrences of `from`. A negative `most` replaces all occurrences.
func (s *state) replace(v, from, to string, most int64) string {
	if most < 0 || most > int64(len(v))+1 {
		most = int64(len(v)) + 1
	}
	s.spend(len(v) + min(int(most), strings.Count(v, from))*len(to))
	return strings.Replace(v, from, to, int(most))
}

// split splits a string at a separator, or at white space if there is no separator. It returns at most
// maxsplit+1 parts. If `right` is set, it splits from the right.
func (s *state) split(a []any, right bool) any {
	v, most := a[0].(string), s.whole(a[2])
	parts := []any{}
	separator, cut := isText(a[1])
	if !cut && a[1] != nil {
		s.string(a[1])
	}
	if cut && separator == "" {
		raise.At(s.line, "split: the separator is empty")
	}
	for rest := v; ; {
		if !cut {
			if right {
				rest = strings.TrimRight(rest, pytext.Space)
			} else {
				rest = strings.TrimLeft(rest, pytext.Space)
			}
			if rest == "" {
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
		default:
			if right {
				from = strings.LastIndexAny(rest, pytext.Space)
			} else {
				from = strings.IndexAny(rest, pytext.Space)
			}
			if from >= 0 {
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
	return newList(parts...)
}

// expandTabs replaces tabs with spaces up to the next multiple of `size`.
func (s *state) expandTabs(v string, size int64) string {
	var b strings.Builder
	column := int64(0)
	for _, r := range v {
		switch {
		case r == '\t' && size > 0:
			n := size - column%size
			s.spendWidth(n)
			b.WriteString(strings.Repeat(" ", int(n)))
			column += n
		case r == '\t':
		default:
			b.WriteRune(r)
			if column++; r == '\n' || r == '\r' {
				column = 0
			}
		}
	}
	s.spend(len(v))
	return b.String()
}
