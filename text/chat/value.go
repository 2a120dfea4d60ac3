package chat

import (
	"cmp"
	"slices"
	"strings"

	"gpuscope/text/chat/internal/raise"
)

// Values represent Python values. nil is None. The Go types bool, int64, float64 and string represent
// themselves. All other types are defined here. Lists and dicts are immutable.
type (
	// undefined is the value of a name that was never set. It is false and empty, and reading an attribute
	// raises an error.
	undefined struct{ name string }
	// markup is the result of the filter safe or escape. Strings that are joined to markup are escaped.
	markup string
	// list is a list or another Python sequence type.
	list struct {
		items  []any
		Kind   sequence
		bounds [3]int64 // arguments of a range
	}
	// dict keeps its keys in insertion order.
	dict struct {
		keys   []any
		values []any
	}
	// iterator returns each of its items only once, as in Python.
	iterator struct{ next func() (any, bool) }
	// namespace is an object whose attributes can be set with the set tag.
	namespace struct{ dict }
	// function is a function, a method bound to its receiver, or a macro.
	function struct {
		call  func(*state, args) any
		macro string // name of the macro; empty for other functions
	}
	// object is a value with attributes. If call is not nil, the value can be called.
	object struct {
		attributes func(s *state, name string) (any, bool)
		call       func(*state, args) any
	}
)

// sequence is the Python type of a list.
type sequence int

const (
	aList sequence = iota
	aTuple
	aGroup // a tuple whose items can also be read by the names grouper and list
	aRange
	keysView
	valuesView
	itemsView
)

// sequences describes the sequence types.
var sequences = [...]struct {
	name      string // name in error messages
	open, end string // text before and after the items
	like      sequence
	indexed   bool
}{
	aList:      {"a list", "[", "]", aList, true},
	aTuple:     {"a tuple", "(", ")", aTuple, true},
	aGroup:     {"a tuple", "(", ")", aTuple, true},
	aRange:     {"a range", "range(", ")", aRange, true},
	keysView:   {"the keys of a dict", "dict_keys([", "])", keysView, false},
	valuesView: {"the values of a dict", "dict_values([", "])", valuesView, false},
	itemsView:  {"the items of a dict", "dict_items([", "])", itemsView, false},
}

func newList(items ...any) *list  { return &list{items: items} }
func newTuple(items ...any) *list { return &list{items: items, Kind: aTuple} }

// isText returns the text of a plain or markup string. The bool is false for other types.
func isText(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case markup:
		return string(v), true
	}
	return "", false
}

func isA[T any](v any) bool {
	_, ok := v.(T)
	return ok
}

// find returns the index of `item` in items, or -1. A search in a short list does not count as work.
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
	s.hashable(key)
	if i := s.find(d.keys, key); i >= 0 {
		d.values[i] = v
		return
	}
	d.keys, d.values = append(d.keys, key), append(d.values, v)
}

// hashable raises an error if a value cannot be a key of a dict.
func (s *state) hashable(v any) {
	switch v := v.(type) {
	case *dict:
	case *list:
		if v.Kind == aList {
			break
		}
		defer s.nest(deepValues)()
		for _, item := range v.items {
			s.spend(1)
			s.hashable(item)
		}
		return
	default:
		return
	}
	raise.At(s.line, "%s cannot be a dict key", typeName(v))
}

// pairs returns each key with its value as a tuple.
func (d *dict) pairs() []any {
	out := make([]any, len(d.keys))
	for i := range d.keys {
		out[i] = newTuple(d.keys[i], d.values[i])
	}
	return out
}

// truth reports whether a value is true in a condition.
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
	case markup:
		return v != ""
	case *list:
		return len(v.items) > 0
	case *dict:
		return len(v.keys) > 0
	}
	return true
}

// equal reports whether two values are equal. A comparison of long strings, lists or dicts counts as work.
func (s *state) equal(a, b any) bool {
	if isNumber(a) {
		return isNumber(b) && compareNumbers(a, b) == 0
	}
	if x, ok := isText(a); ok {
		y, ok := isText(b)
		s.spend(min(len(x), len(y)) / 16)
		return ok && x == y
	}
	switch a := a.(type) {
	case *list:
		b, ok := b.(*list)
		if !ok {
			return false
		}
		x, y := sequences[a.Kind].like, sequences[b.Kind].like
		if x == valuesView || x != y && (x < keysView || y < keysView) { // keys and items compare like sets
			return a == b
		}
		defer s.nest(deepValues)()
		if len(a.items) != len(b.items) {
			return false
		}
		s.spend(8 + len(a.items))
		if x >= keysView {
			return !slices.ContainsFunc(a.items, func(v any) bool { return s.find(b.items, v) < 0 })
		}
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
		return isA[undefined](b)
	}
	return !isA[undefined](b) && a == b
}

// order compares two values whose types have an order. Like equal, it counts work.
func (s *state) order(a, b any) int {
	if isNumber(a) && isNumber(b) {
		return compareNumbers(a, b)
	}
	x, ok := isText(a)
	if y, also := isText(b); ok && also {
		s.spend(min(len(x), len(y)) / 16)
		return strings.Compare(x, y)
	}
	p, ok := a.(*list)
	q, also := b.(*list)
	if ok && also && sequences[p.Kind].like == sequences[q.Kind].like && sequences[p.Kind].like <= aTuple {
		defer s.nest(deepValues)()
		n := min(len(p.items), len(q.items))
		s.spend(8 + n)
		for i := range n {
			if !s.equal(p.items[i], q.items[i]) {
				return s.order(p.items[i], q.items[i])
			}
		}
		return cmp.Compare(len(p.items), len(q.items))
	}
	raise.At(s.line, "cannot order %s and %s", typeName(a), typeName(b))
	return 0
}

// typeName returns the type of a value for error messages.
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
	case string, markup:
		return "a string"
	case *list:
		return sequences[v.Kind].name
	case *dict:
		return "a dict"
	case *iterator:
		return "an iterator"
	case *function:
		return "a function"
	}
	return "an object"
}

// iterate returns a function that returns the items of a value, one per call.
func (s *state) iterate(v any) func() (any, bool) {
	if it, ok := v.(*iterator); ok {
		return func() (any, bool) {
			s.spend(1)
			return it.next()
		}
	}
	items := s.items(v)
	return func() (any, bool) {
		if len(items) == 0 {
			return nil, false
		}
		item := items[0]
		items = items[1:]
		return item, true
	}
}

// items returns all items of a value. It consumes an iterator.
func (s *state) items(v any) []any {
	switch v := v.(type) {
	case undefined:
		return nil
	case *list:
		s.spend(len(v.items) / 16)
		return v.items
	case *dict:
		s.spend(len(v.keys) / 16)
		return v.keys
	case *iterator:
		defer s.nest("iterators nest")()
		var out []any
		for {
			item, ok := v.next()
			if !ok {
				return out
			}
			s.spend(16)
			out = append(out, item)
		}
	}
	if text, ok := isText(v); ok {
		s.spend(16 * len(text))
		var out []any
		for _, r := range text {
			out = append(out, string(r))
		}
		return out
	}
	raise.At(s.line, "%s has no items", typeName(v))
	return nil
}

// sized returns the items of a value that has a length. It is an error if the value is an iterator, which has
// no length.
func (s *state) sized(v any) []any {
	if isA[*iterator](v) {
		raise.At(s.line, "%s has no length", typeName(v))
	}
	return s.items(v)
}

// iterator returns an iterator over the items of a value. It converts each requested item with the function
// `convert`, and skips the item if `convert` returns false.
func (s *state) iterator(v any, convert func(any) (any, bool)) *iterator {
	var next func() (any, bool)
	return &iterator{func() (any, bool) {
		if next == nil {
			next = s.iterate(v)
		}
		defer s.nest("iterators nest")()
		for {
			item, ok := next()
			if !ok {
				return nil, false
			}
			s.spend(8)
			if out, ok := convert(item); ok {
				return out, true
			}
		}
	}}
}

// copied returns a list with a copy of the items.
func (s *state) copied(items []any) *list {
	s.spend(16 * len(items))
	return &list{items: slices.Clone(items)}
}

// text converts a value to output text.
func (s *state) text(v any) string {
	if text, ok := isText(v); ok {
		s.spend(len(text)) // count the work of the caller, which reads the text
		return text
	}
	if isA[undefined](v) {
		return ""
	}
	var b strings.Builder
	s.repr(&b, v)
	return b.String()
}

// string returns the text of a string. Any other type is an error.
func (s *state) string(v any) string {
	text, ok := isText(v)
	if !ok {
		raise.At(s.line, "want a string, not %s", typeName(v))
	}
	return text
}
