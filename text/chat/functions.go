package chat

import (
	"time"

	"gpuscope/text/chat/internal/raise"
)

// globals returns the variables that every template has in addition to the variables of its context.
func globals(now time.Time) map[string]any {
	return map[string]any{
		"raise_exception": builtinFunction("raise_exception", "message", func(s *state, a []any) any {
			raise.At(s.line, "%s", s.text(a[0]))
			return nil
		}),
		"strftime_now": builtinFunction("strftime_now", "format", func(s *state, a []any) any {
			return s.strftime(now, s.string(a[0]))
		}),
		"range": builtinFunction("range", "*args", newRange),
		"dict": builtinFunction("dict", "*args, **kwargs", func(s *state, a []any) any {
			return newDict(s, a)
		}),
		"namespace": builtinFunction("namespace", "*args, **kwargs", newNamespace),
		"cycler":    builtinFunction("cycler", "*items", newCycler),
		"joiner":    builtinFunction("joiner", "sep=undefined", newJoiner),
	}
}

// newRange implements range(stop), range(start, stop) and range(start, stop, step). The result does not
// include `stop`.
func newRange(s *state, a []any) any {
	given := a[0].(*list).items
	if len(given) < 1 || len(given) > 3 {
		raise.At(s.line, "range: the call has %d arguments; it needs 1 to 3", len(given))
	}
	from, to, step := int64(0), s.whole(given[0]), int64(1)
	if len(given) > 1 {
		from, to = to, s.whole(given[1])
	}
	if len(given) > 2 {
		step = s.whole(given[2])
	}
	if step == 0 {
		raise.At(s.line, "range: the step must not be 0")
	}
	l := &list{Kind: aRange, bounds: [3]int64{from, to, step}}
	for i := from; step > 0 && i < to || step < 0 && i > to; i += step {
		if len(l.items) == mostInRange {
			raise.At(s.line, "range: more than %d numbers are not allowed", mostInRange)
		}
		if l.items = append(l.items, i); step > 0 && i > to-step || step < 0 && i < to-step {
			break // the next i += step would overflow
		}
	}
	s.spend(16 * len(l.items))
	return l
}

// newDict implements dict. The result contains the entries of a dict or of a list of pairs, followed by the
// named arguments.
func newDict(s *state, a []any) *dict {
	d := &dict{}
	from := a[0].(*list).items
	if len(from) > 1 {
		raise.At(s.line, "dict: the call has %d positional arguments, but at most 1 is allowed", len(from))
	}
	if len(from) == 1 {
		var pairs []any
		if given, ok := from[0].(*dict); ok {
			pairs = given.pairs()
		} else {
			pairs = s.items(from[0])
		}
		for _, pair := range pairs {
			both := s.items(pair)
			if len(both) != 2 {
				raise.At(s.line, "dict: each item must be a pair of a key and a value")
			}
			s.set(d, both[0], both[1])
		}
	}
	named := a[1].(*dict)
	for i, name := range named.keys {
		s.set(d, name, named.values[i])
	}
	s.spend(16 * len(d.keys))
	return d
}

func newNamespace(s *state, a []any) any { return &namespace{*newDict(s, a)} }

// newCycler implements cycler. Its method next returns the items in a cycle.
func newCycler(s *state, a []any) any {
	items, at := a[0].(*list).items, 0
	if len(items) == 0 {
		raise.At(s.line, "cycler: no items were given")
	}
	return &object{attributes: func(_ *state, name string) (any, bool) {
		switch name {
		case "current":
			return items[at], true
		case "next":
			return builtinFunction("next", "", func(*state, []any) any {
				was := items[at]
				at = (at + 1) % len(items)
				return was
			}), true
		case "reset":
			return builtinFunction("reset", "", func(*state, []any) any {
				at = 0
				return nil
			}), true
		}
		return nil, false
	}}
}

// newJoiner implements joiner. The first call returns an empty string, and later calls return the
// separator.
func newJoiner(s *state, a []any) any {
	used := false
	sep := a[0]
	if isA[undefined](sep) {
		sep = ", "
	}
	return &object{
		attributes: func(_ *state, name string) (any, bool) { return sep, name == "sep" },
		call: func(s *state, a args) any {
			s.bind(joinerSignature, a)
			if used {
				return sep
			}
			used = true
			return ""
		},
	}
}

var joinerSignature = sign("joiner", "")
