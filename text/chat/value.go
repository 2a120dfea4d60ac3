package chat

import (
	"cmp"
	"slices"
	"strings"

	"gpuscope/text/chat/internal/raise"
)

// Values are those of Python: nil is None, bool, int64, float64, string, and the types here. A list or a dict
// does not change once it is made.
type (
	// undefined is the value of a name that was never set: false, empty, and without attributes.
	undefined struct{ name string }
	// markup is a string that the filters safe and escape made. What is joined to it is escaped.
	markup string
	// list is a list, or another sequence that Python has a type of its own for.
	list struct {
		items  []any
		Kind   sequence
		bounds [3]int64 // of a range: its arguments
	}
	// dict keeps its keys in the order in which they came.
	dict struct {
		keys   []any
		values []any
	}
	// iterator gives its items one after the other, each once.
	iterator struct{ next func() (any, bool) }
	// namespace is what set gives attributes to.
	namespace struct{ dict }
	// function is a function, a method with its receiver, or a macro.
	function struct{ call func(*state, args) any }
	// object has attributes, and a call where that is not nil.
	object struct {
		attributes func(s *state, name string) (any, bool)
		call       func(*state, args) any
	}
)

// sequence is the type of a list.
type sequence int

const (
	aList sequence = iota
	aTuple
	aGroup // a tuple whose items are named grouper and list
	aRange
	keysView
	valuesView
	itemsView
)

// sequences describes each type of list.
var sequences = [...]struct {
	name      string // for errors
	open, end string // around its items in text
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

// isText gives a string, plain or markup.
func isText(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case markup:
		return string(v), true
	}
	return "", false
}

// isA says whether a value is of a type.
func isA[T any](v any) bool {
	_, ok := v.(T)
	return ok
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
	s.hashable(key)
	if i := s.find(d.keys, key); i >= 0 {
		d.values[i] = v
		return
	}
	d.keys, d.values = append(d.keys, key), append(d.values, v)
}

// hashable fails for a value that cannot be a key of a dict.
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
	raise.At(s.line, "%s cannot be a key", typeName(v))
}

// pairs are the keys with their values, as tuples.
func (d *dict) pairs() []any {
	out := make([]any, len(d.keys))
	for i := range d.keys {
		out[i] = newTuple(d.keys[i], d.values[i])
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
	case markup:
		return v != ""
	case *list:
		return len(v.items) > 0
	case *dict:
		return len(v.keys) > 0
	}
	return true
}

// equal compares two values. The time for long strings, and for what is in lists and dicts, is counted.
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
		if x == valuesView || x != y && (x < keysView || y < keysView) { // views of keys and items are sets
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

// order compares two values of types that have an order, and counts as equal does.
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
	raise.At(s.line, "%s and %s have no order", typeName(a), typeName(b))
	return 0
}

// typeName describes a value's type in errors.
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

// iterate gives the items of a value one after the other.
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

// items are all items of a value. Those of an iterator are used up.
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
		defer s.nest("iterators call one another")()
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

// sized are the items of a value that has a length, which an iterator has not.
func (s *state) sized(v any) []any {
	if isA[*iterator](v) {
		raise.At(s.line, "%s has no length", typeName(v))
	}
	return s.items(v)
}

// iterator gives what make makes of the items of a value, each when it is asked for. An item is left out
// where make says false.
func (s *state) iterator(v any, convert func(any) (any, bool)) *iterator {
	var next func() (any, bool)
	return &iterator{func() (any, bool) {
		if next == nil {
			next = s.iterate(v)
		}
		defer s.nest("iterators call one another")()
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

// copied is a list of items of its own.
func (s *state) copied(items []any) *list {
	s.spend(16 * len(items))
	return &list{items: slices.Clone(items)}
}

// text is a value as it is written out.
func (s *state) text(v any) string {
	if text, ok := isText(v); ok {
		s.spend(len(text)) // whoever asks reads it
		return text
	}
	if isA[undefined](v) {
		return ""
	}
	var b strings.Builder
	s.repr(&b, v)
	return b.String()
}

// string is a value that must be a string.
func (s *state) string(v any) string {
	text, ok := isText(v)
	if !ok {
		raise.At(s.line, "want a string, not %s", typeName(v))
	}
	return text
}
