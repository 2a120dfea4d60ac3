package chat

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Values are those of Python: nil is None, bool, int64, float64, string, and the types here.
type (
	// undefined is what a name stands for that nothing was given: false, empty, and without attributes.
	undefined struct{ name string }
	// list is a list or a tuple. It does not change once it is made.
	list struct {
		items []any
		tuple bool
	}
	// dict keeps its keys in the order in which they came.
	dict struct {
		keys   []any
		values []any
	}
	// namespace is what set gives attributes to.
	namespace struct{ dict }
	// callable is a function, a method with what it belongs to, or a macro.
	callable func(*state, args) any
	// args are what a call is given.
	args struct {
		list  []any
		named map[string]any
	}
)

// at is an argument by its place, undefined where it was not given.
func (a args) at(i int) any {
	if i < len(a.list) {
		return a.list[i]
	}
	return undefined{"an argument"}
}

// or is an argument by its place or its name, or what it is where it was not given.
func (a args) or(i int, name string, otherwise any) any {
	if i < len(a.list) {
		return a.list[i]
	}
	if v, ok := a.named[name]; ok {
		return v
	}
	return otherwise
}

// find is where an item is, -1 where it is not. It does not count the first few, as loop's attributes are.
func (s *state) find(items []any, item any) int {
	s.spend(len(items) / 16)
	return slices.IndexFunc(items, func(v any) bool { return s.equal(v, item) })
}

func (s *state) get(d *dict, key any) (any, bool) {
	if i := s.find(d.keys, key); i >= 0 {
		return d.values[i], true
	}
	return nil, false
}

func (s *state) set(d *dict, key, v any) {
	if i := s.find(d.keys, key); i >= 0 {
		d.values[i] = v
		return
	}
	d.keys, d.values = append(d.keys, key), append(d.values, v)
}

// pairs are the keys with their values, as tuples.
func (d *dict) pairs() []any {
	out := make([]any, len(d.keys))
	for i := range d.keys {
		out[i] = &list{[]any{d.keys[i], d.values[i]}, true}
	}
	return out
}

// truth says whether a value counts as true.
func truth(v any) bool {
	switch v := v.(type) {
	case nil, undefined:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case *list:
		return len(v.items) > 0
	case *dict:
		return len(v.keys) > 0
	}
	return true
}

// real is a number as a float; a bool is one.
func real(v any) (float64, bool) {
	switch v := v.(type) {
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// whole is a number that has no fraction by its type.
func whole(v any) (int64, bool) {
	switch v := v.(type) {
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	case int64:
		return v, true
	}
	return 0, false
}

// equal compares two values. What long strings and what is in lists and dicts take is counted.
func (s *state) equal(a, b any) bool {
	if x, ok := real(a); ok {
		y, ok := real(b)
		return ok && x == y
	}
	switch a := a.(type) {
	case string:
		b, ok := b.(string)
		s.spend(min(len(a), len(b)) / 16)
		return ok && a == b
	case *list:
		defer s.nest(deepValues)()
		b, ok := b.(*list)
		if !ok || a.tuple != b.tuple || len(a.items) != len(b.items) {
			return false
		}
		s.spend(8 + len(a.items))
		return slices.EqualFunc(a.items, b.items, s.equal)
	case *dict:
		defer s.nest(deepValues)()
		b, ok := b.(*dict)
		if !ok || len(a.keys) != len(b.keys) {
			return false
		}
		s.spend(8 + len(a.keys))
		for i, key := range a.keys {
			if v, ok := s.get(b, key); !ok || !s.equal(a.values[i], v) {
				return false
			}
		}
		return true
	case undefined:
		_, ok := b.(undefined)
		return ok
	case callable:
		return false
	}
	if _, ok := b.(callable); ok {
		return false
	}
	return a == b
}

// order compares two values of a kind that has an order, and counts as equal does.
func (s *state) order(a, b any) int {
	x, ok := real(a)
	y, also := real(b)
	if ok && also {
		return cmp.Compare(x, y)
	}
	switch a := a.(type) {
	case string:
		if b, ok := b.(string); ok {
			s.spend(min(len(a), len(b)) / 16)
			return strings.Compare(a, b)
		}
	case *list:
		if b, ok := b.(*list); ok {
			defer s.nest(deepValues)()
			s.spend(8 + min(len(a.items), len(b.items)))
			return slices.CompareFunc(a.items, b.items, s.order)
		}
	}
	fail(s.line, "%s and %s have no order", typeName(a), typeName(b))
	return 0
}

// typeName is what a person calls a value's type.
func typeName(v any) string {
	switch v := v.(type) {
	case nil:
		return "none"
	case undefined:
		return v.name + ", which is undefined,"
	case bool:
		return "a bool"
	case int64, float64:
		return "a number"
	case string:
		return "a string"
	case *list:
		return "a list"
	case *dict:
		return "a dict"
	case callable:
		return "a function"
	}
	return "an object"
}

// text is a value as it is written out.
func (s *state) text(v any) string {
	switch v := v.(type) {
	case string:
		s.spend(len(v)) // whoever asks goes through it
		return v
	case undefined:
		return ""
	}
	var b strings.Builder
	s.repr(&b, v)
	return b.String()
}

// repr writes a value as Python's repr does.
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
	case *list:
		defer s.nest(deepValues)()
		open, end := "[", "]"
		if v.tuple {
			if open, end = "(", ")"; len(v.items) == 1 {
				end = ",)"
			}
		}
		b.WriteString(open)
		for i, item := range v.items {
			if i > 0 {
				b.WriteString(", ")
			}
			s.repr(b, item)
		}
		b.WriteString(end)
	case *dict:
		defer s.nest(deepValues)()
		b.WriteString("{")
		for i := range v.keys {
			if i > 0 {
				b.WriteString(", ")
			}
			s.repr(b, v.keys[i])
			b.WriteString(": ")
			s.repr(b, v.values[i])
		}
		b.WriteString("}")
	default:
		fail(s.line, "%s cannot be written out", typeName(v))
	}
}

// float is a float as Python writes it: with a point, or with an exponent of two digits.
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

// quoted is a string as Python's repr writes it.
func quoted(v string) string {
	quote := "'"
	if strings.Contains(v, "'") && !strings.Contains(v, `"`) {
		quote = `"`
	}
	var b strings.Builder
	b.WriteString(quote)
	for _, r := range v {
		switch {
		case string(r) == quote, r == '\\':
			b.WriteString(`\` + string(r))
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r < 0x100:
			b.WriteString(`\x` + hex(r, 2))
		case r < 0x10000:
			b.WriteString(`\u` + hex(r, 4))
		default:
			b.WriteString(`\U` + hex(r, 8))
		}
	}
	return b.String() + quote
}

func hex(r rune, digits int) string {
	text := strconv.FormatInt(int64(r), 16)
	return strings.Repeat("0", max(0, digits-len(text))) + text
}
