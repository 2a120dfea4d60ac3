package chat

import (
	"gpuscope/text/chat/internal/raise"
)

import "time"

// globals are the variables of every template, beside those of its context.
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

// newRange is range: whole numbers from the first up to the last, which is not one of them.
func newRange(s *state, a []any) any {
	given := a[0].(*list).items
	if len(given) < 1 || len(given) > 3 {
		raise.At(s.line, "range: %d arguments, takes 1 to 3", len(given))
	}
	from, to, step := int64(0), s.whole(given[0]), int64(1)
	if len(given) > 1 {
		from, to = to, s.whole(given[1])
	}
	if len(given) > 2 {
		step = s.whole(given[2])
	}
	if step == 0 {
		raise.At(s.line, "range: a step of 0")
	}
	l := &list{Kind: aRange, bounds: [3]int64{from, to, step}}
	for i := from; step > 0 && i < to || step < 0 && i > to; i += step {
		if len(l.items) == mostInRange {
			raise.At(s.line, "range: more than %d numbers", mostInRange)
		}
		if l.items = append(l.items, i); step > 0 && i > to-step || step < 0 && i < to-step {
			break // before the next one overflows
		}
	}
	s.spend(16 * len(l.items))
	return l
}

// newDict is dict: a dict, or pairs, with named values after.
func newDict(s *state, a []any) *dict {
	d := &dict{}
	from := a[0].(*list).items
	if len(from) > 1 {
		raise.At(s.line, "dict: %d arguments, takes at most 1", len(from))
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
				raise.At(s.line, "dict: want keys with values")
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

// newCycler is cycler: its method next gives the items in turns.
func newCycler(s *state, a []any) any {
	items, at := a[0].(*list).items, 0
	if len(items) == 0 {
		raise.At(s.line, "cycler: there is nothing to go through")
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

// newJoiner is joiner: the first call gives nothing, the others the separator.
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
