package chat

import "gpuscope/text/chat/internal/raise"

// loop is a parsed for tag.
type loop struct {
	target    target
	test      expr // selects the items; nil selects all items
	body      []stmt
	otherwise []stmt // else branch: runs if every iteration, if any, ended with break or continue
	recursive bool
}

// run executes a for tag for the items of the value `over`. `depth` is the recursion depth of a recursive
// loop.
func (l *loop) run(s *state, over any, depth int) flow {
	items := s.items(over)
	defer s.scoped(s.vars)()
	if l.test != nil {
		var kept []any
		for _, item := range items {
			s.spend(1)
			l.target(s, item)
			if truth(l.test(s)) {
				kept = append(kept, item)
			}
		}
		items = kept
	}
	t := &turns{loop: l, items: items, depth: depth}
	t.object = &object{t.attribute, t.again}
	home := s.vars
	ended := false // whether an iteration ended without break or continue
	for i, item := range items {
		t.at = i
		clear(home.vars) // an iteration does not see variables that the previous one set
		l.target(s, item)
		s.vars.vars["loop"] = t.object
		s.spend(16)
		f := s.run(l.body)
		ended = ended || f == on
		if f == leave {
			break
		}
	}
	if !ended {
		clear(home.vars)
		return s.run(l.otherwise)
	}
	return on
}

// turns is the value of the template variable `loop`. It has attributes such as loop.index. In a recursive
// loop it can be called to run the loop for other items.
type turns struct {
	*object
	loop    *loop
	items   []any
	at      int
	depth   int
	changed *list // arguments of the previous call of loop.changed
}

func (t *turns) attribute(s *state, name string) (any, bool) {
	i, n := t.at, len(t.items)
	switch name {
	case "index":
		return int64(i + 1), true
	case "index0":
		return int64(i), true
	case "revindex":
		return int64(n - i), true
	case "revindex0":
		return int64(n - i - 1), true
	case "first":
		return i == 0, true
	case "last":
		return i == n-1, true
	case "length":
		return int64(n), true
	case "depth":
		return int64(t.depth + 1), true
	case "depth0":
		return int64(t.depth), true
	case "previtem":
		if i > 0 {
			return t.items[i-1], true
		}
		return undefined{"the item before the first"}, true
	case "nextitem":
		if i+1 < n {
			return t.items[i+1], true
		}
		return undefined{"the item after the last"}, true
	case "cycle":
		return builtinFunction("loop.cycle", "*args", func(s *state, a []any) any {
			choices := a[0].(*list).items
			if len(choices) == 0 {
				raise.At(s.line, "loop.cycle: no items were given")
			}
			return choices[t.at%len(choices)]
		}), true
	case "changed":
		return builtinFunction("loop.changed", "*value", func(s *state, a []any) any {
			now := a[0].(*list)
			was := t.changed
			t.changed = now
			return was == nil || !s.equal(was, now)
		}), true
	}
	return nil, false
}

// again implements a call of the template variable `loop`. It runs the recursive loop for other items and
// returns the output.
func (t *turns) again(s *state, a args) any {
	over := s.bind(recursionSignature, a)[0]
	if !t.loop.recursive {
		raise.At(s.line, "the loop is not recursive")
	}
	defer s.nest("recursive loops nest")()
	return s.written(func() { t.loop.run(s, over, t.depth+1) })
}

var recursionSignature = sign("loop", "iterable")
