package chat

import (
	"math"
	"slices"
	"strings"
)

// state is one rendering.
type state struct {
	out   *strings.Builder
	vars  *scope
	line  int // of what is being done
	spent int
	most  int // that may be spent
	depth int // of what calls itself, see nest
}

// scope are the variables of a part of a template. It sees those around it, and sets its own.
type scope struct {
	vars   map[string]any
	around *scope
}

// spend counts n parts evaluated or bytes made, and ends what takes too much.
func (s *state) spend(n int) {
	if s.spent += n; s.spent > s.most {
		fail(s.line, "it does not come to an end: more than %d parts and bytes were made", s.most)
	}
}

const deepValues = "values nest" // for nest

// nest counts how deep something is that calls itself; what it returns ends it.
func (s *state) nest(what string) func() {
	if s.depth++; s.depth > mostDepth {
		fail(s.line, "%s more than %d deep", what, mostDepth)
	}
	return func() { s.depth-- }
}

func (s *state) write(text string) {
	s.spend(1 + len(text))
	s.out.WriteString(text)
}

func (s *state) run(body []stmt) flow {
	for _, do := range body {
		if f := do(s); f != on {
			return f
		}
	}
	return on
}

// scoped begins a scope within one; what it returns goes back.
func (s *state) scoped(around *scope) func() {
	was := s.vars
	s.vars = &scope{map[string]any{}, around}
	return func() { s.vars = was }
}

// capture is what a body writes, in a scope of its own.
func (s *state) capture(body []stmt) string {
	defer s.scoped(s.vars)()
	was := s.out
	s.out = &strings.Builder{}
	defer func() { s.out = was }()
	s.run(body)
	return s.out.String()
}

func (s *state) lookup(t token) any {
	s.spend(1)
	for at := s.vars; at != nil; at = at.around {
		if v, ok := at.vars[t.text]; ok {
			return v
		}
	}
	return undefined{t.text}
}

// list makes a list of what expressions give.
func (s *state) list(exprs []expr, tuple bool) any {
	s.spend(16 * len(exprs))
	l := &list{items: make([]any, len(exprs)), tuple: tuple}
	for i, e := range exprs {
		l.items[i] = e(s)
	}
	return l
}

// items are what a loop goes over.
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
	case string:
		s.spend(16 * len(v))
		var out []any
		for _, r := range v {
			out = append(out, string(r))
		}
		return out
	}
	fail(s.line, "%s has no items", typeName(v))
	return nil
}

// loop is a for tag.
type loop struct {
	names     []string
	test      expr // nil: all items
	body      []stmt
	otherwise []stmt // where no turn came to its end
	recursive bool
}

// loopNames are the attributes of loop.
var loopNames = []any{
	"index", "index0", "revindex", "revindex0", "first", "last", "length", "depth", "depth0",
	"previtem", "nextitem", "cycle", "changed",
}

// loop runs a for tag over a value; depth is how often it has called itself.
func (s *state) loop(l *loop, over any, depth int) {
	items := s.items(over)
	defer s.scoped(s.vars)()
	if l.test != nil {
		var kept []any
		for _, item := range items {
			s.spend(1)
			s.assign(l.names, item)
			if truth(l.test(s)) {
				kept = append(kept, item)
			}
		}
		items = kept
	}
	at := 0
	about := dict{loopNames, make([]any, len(loopNames))}
	var changed any = undefined{}
	cycle := callable(func(s *state, a args) any {
		if len(a.list) == 0 {
			fail(s.line, "loop.cycle: there is nothing to go through")
		}
		return a.list[at%len(a.list)]
	})
	isChanged := callable(func(s *state, a args) any {
		was, now := changed, &list{items: a.list}
		changed = now
		return !s.equal(was, now)
	})
	home := s.vars
	ended := false // a turn, without break or continue
	for i, item := range items {
		at = i
		n := len(items)
		copy(about.values, []any{ // of loopNames
			int64(i + 1), int64(i), int64(n - i), int64(n - i - 1),
			i == 0, i == n-1, int64(n), int64(depth + 1), int64(depth),
			s.item(&list{items: items[:i]}, int64(-1)), s.item(&list{items: items[i+1:]}, int64(0)),
			cycle, isChanged,
		})
		clear(home.vars) // what a turn has set is its own
		s.assign(l.names, item)
		s.vars.vars["loop"] = &recursion{namespace: namespace{about}, again: func(over any) string {
			if !l.recursive {
				fail(s.line, "the loop is not recursive")
			}
			defer s.nest("loops call themselves")()
			was := s.out
			s.out = &strings.Builder{}
			defer func() { s.out = was }()
			s.loop(l, over, depth+1)
			return s.out.String()
		}}
		s.spend(16)
		f := s.run(l.body)
		ended = ended || f == on
		if f == leave {
			break
		}
	}
	if !ended {
		clear(home.vars)
		s.run(l.otherwise)
	}
}

// recursion is what loop stands for: it has attributes, and is called to go over other items.
type recursion struct {
	namespace
	again func(over any) string
}

func (s *state) call(f any, a args) any {
	s.spend(1)
	switch f := f.(type) {
	case callable:
		return f(s, a)
	case *recursion:
		return f.again(a.at(0))
	}
	fail(s.line, "%s cannot be called", typeName(f))
	return nil
}

// attribute is v.name: a method first, then an item.
func (s *state) attribute(v any, name string) any {
	s.spend(1)
	switch v := v.(type) {
	case undefined:
		fail(s.line, "%s is undefined", v.name)
	case *namespace:
		return s.item(&v.dict, name)
	case *recursion:
		return s.item(&v.dict, name)
	}
	if m, ok := s.method(v, name); ok {
		return m
	}
	if d, ok := v.(*dict); ok {
		return s.item(d, name)
	}
	return undefined{name}
}

// item is v[key].
func (s *state) item(v, key any) any {
	s.spend(1)
	at := func(n int) (int, bool) {
		i, ok := whole(key)
		if i < 0 {
			i += int64(n)
		}
		return int(i), ok && i >= 0 && i < int64(n)
	}
	name, named := key.(string)
	switch v := v.(type) {
	case undefined:
		fail(s.line, "%s is undefined", v.name)
	case *dict:
		if got, ok := s.get(v, key); ok {
			return got
		}
	case *list:
		if i, ok := at(len(v.items)); ok {
			return v.items[i]
		}
	case string:
		if _, ok := whole(key); ok {
			if i, ok := at(len(s.items(v))); ok {
				return s.items(v)[i]
			}
		}
	}
	if named {
		if m, ok := s.method(v, name); ok {
			return m
		}
		return undefined{name}
	}
	return undefined{s.text(key)}
}

// slice is v[from:to:by], of which nil is not given.
func (s *state) slice(v, from, to, by any) any {
	items := s.items(v)
	n := int64(len(items))
	step := int64(1)
	if by != nil {
		if step, _ = whole(by); step == 0 {
			fail(s.line, "a slice goes by 0")
		}
	}
	bound := func(v any, otherwise, least, most int64) int64 {
		i, ok := whole(v)
		if !ok {
			return otherwise
		}
		if i < 0 {
			i += n
		}
		return max(least, min(i, most))
	}
	out := []any{}
	if step > 0 {
		for i, end := bound(from, 0, 0, n), bound(to, n, 0, n); i < end; i += min(step, n) {
			out = append(out, items[i])
		}
	} else {
		for i, end := bound(from, n-1, -1, n-1), bound(to, -1, -1, n-1); i > end; i += max(step, -n) {
			out = append(out, items[i])
		}
	}
	s.spend(16 * len(out))
	switch v := v.(type) {
	case string:
		var b strings.Builder
		for _, r := range out {
			b.WriteString(r.(string))
		}
		return b.String()
	case *list:
		return &list{out, v.tuple}
	}
	return &list{items: out}
}

func (s *state) compare(op string, a, b any) bool {
	s.spend(1)
	switch op {
	case "==":
		return s.equal(a, b)
	case "!=":
		return !s.equal(a, b)
	case "in":
		return s.contains(b, a)
	case "not in":
		return !s.contains(b, a)
	case "<":
		return s.order(a, b) < 0
	case "<=":
		return s.order(a, b) <= 0
	case ">":
		return s.order(a, b) > 0
	}
	return s.order(a, b) >= 0
}

func (s *state) contains(v, part any) bool {
	if text, ok := v.(string); ok {
		s.spend(len(text))
		return strings.Contains(text, s.string(part))
	}
	return s.find(s.items(v), part) >= 0
}

// calculate is what a binary operator gives.
func (s *state) calculate(op token, a, b any) any {
	s.line = op.line
	s.spend(1)
	if op.text == "~" {
		return s.join(s.text(a), s.text(b))
	}
	if x, ok := whole(a); ok {
		if y, ok := whole(b); ok {
			if v, ok := s.wholes(op.text, x, y); ok {
				return v
			}
		}
	}
	x, ok := real(a)
	y, also := real(b)
	if ok && also {
		return s.reals(op.text, x, y)
	}
	switch left := a.(type) {
	case string:
		if right, ok := b.(string); ok && op.text == "+" {
			return s.join(left, right)
		}
		if op.text == "%" {
			return s.format(left, b)
		}
	case *list:
		if right, ok := b.(*list); ok && op.text == "+" && left.tuple == right.tuple {
			s.spend(16 * (len(left.items) + len(right.items)))
			return &list{slices.Concat(left.items, right.items), left.tuple}
		}
	}
	if op.text == "*" {
		if n, ok := whole(a); ok {
			return s.repeat(b, n)
		}
		if n, ok := whole(b); ok {
			return s.repeat(a, n)
		}
	}
	fail(s.line, "%s %s %s cannot be", typeName(a), op.text, typeName(b))
	return nil
}

func (s *state) join(a, b string) string {
	s.spend(len(a) + len(b))
	return a + b
}

// repeat is a string or a list so many times.
func (s *state) repeat(v any, n int64) any {
	n = max(0, min(n, int64(s.most)+1))
	switch v := v.(type) {
	case string:
		s.spend(len(v) * int(n))
		return strings.Repeat(v, int(n))
	case *list:
		s.spend(16 * len(v.items) * int(n))
		return &list{slices.Repeat(v.items, int(n)), v.tuple}
	}
	fail(s.line, "%s cannot be repeated", typeName(v))
	return nil
}

// wholes calculates with whole numbers, false where the result is none.
func (s *state) wholes(op string, x, y int64) (any, bool) {
	switch op {
	case "+":
		return x + y, true
	case "-":
		return x - y, true
	case "*":
		return x * y, true
	case "//", "%":
		if y == 0 {
			fail(s.line, "division by zero")
		}
		quotient, rest := x/y, x%y
		if rest != 0 && (rest < 0) != (y < 0) {
			quotient, rest = quotient-1, rest+y
		}
		if op == "%" {
			return rest, true
		}
		return quotient, true
	case "**":
		if v := math.Pow(float64(x), float64(y)); y >= 0 && math.Abs(v) < 1<<53 {
			return int64(v), true
		}
	}
	return nil, false
}

func (s *state) reals(op string, x, y float64) any {
	switch op {
	case "+":
		return x + y
	case "-":
		return x - y
	case "*":
		return x * y
	case "**":
		return math.Pow(x, y)
	}
	if y == 0 {
		fail(s.line, "division by zero")
	}
	switch op {
	case "/":
		return x / y
	case "//":
		return math.Floor(x / y)
	}
	return x - y*math.Floor(x/y)
}

// string is a value that must be a string.
func (s *state) string(v any) string {
	text, ok := v.(string)
	if !ok {
		fail(s.line, "want a string, not %s", typeName(v))
	}
	return text
}
