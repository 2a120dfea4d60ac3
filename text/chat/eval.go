package chat

import (
	"slices"
	"strings"

	"gpuscope/text/chat/internal/pytext"
	"gpuscope/text/chat/internal/raise"
)

// state is the state of one rendering of a template.
type state struct {
	out   *strings.Builder
	vars  *scope
	line  int // line of the tag or operator that is being evaluated
	spent int
	most  int // maximum value of `spent`
	depth int // current depth of recursion; nest changes it
}

// scope holds the variables of a part of a template, such as the body of a loop. Reads also search the
// enclosing scopes. Writes change only this scope.
type scope struct {
	vars   map[string]any
	around *scope
}

// spend adds n to the work counter, which counts evaluated parts and bytes. It raises an error if the counter
// exceeds s.most.
func (s *state) spend(n int) {
	if s.spent += n; s.spent > s.most || n < 0 {
		raise.At(s.line, "the template takes too long: more than %d units of work, where an expression or a byte takes about one unit",
			s.most)
	}
}

const deepValues = "values nest" // start of an error message; see nest

// nest must be called at the start of a recursive call. It raises an error, which begins with `what`, if the
// recursion is too deep. The returned function must be called at the end of the recursive call.
func (s *state) nest(what string) func() {
	if s.depth++; s.depth > mostDepth {
		raise.At(s.line, "%s more than %d deep", what, mostDepth)
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

// scoped sets s.vars to a new scope inside the scope `around`. The returned function restores the previous
// scope.
func (s *state) scoped(around *scope) func() {
	was := s.vars
	s.vars = &scope{map[string]any{}, around}
	return func() { s.vars = was }
}

// written returns the output that the function `do` writes.
func (s *state) written(do func()) string {
	was := s.out
	s.out = &strings.Builder{}
	defer func() { s.out = was }()
	do()
	return s.out.String()
}

// capture runs a body in a new scope and returns its output. If f is not `on`, that is, after a break or
// continue, the caller must ignore the output.
func (s *state) capture(body []stmt) (text string, f flow) {
	defer s.scoped(s.vars)()
	text = s.written(func() { f = s.run(body) })
	return text, f
}

func (s *state) lookup(name string) any {
	s.spend(1)
	for at := s.vars; at != nil; at = at.around {
		if v, ok := at.vars[name]; ok {
			return v
		}
	}
	return undefined{name}
}

// list evaluates expressions and returns their values as a list.
func (s *state) list(exprs []expr, kind sequence) any {
	s.spend(16 * len(exprs))
	l := &list{items: make([]any, len(exprs)), Kind: kind}
	for i, e := range exprs {
		l.items[i] = e(s)
	}
	return l
}

// attributeOnly returns an attribute of a value. Unlike `attribute`, it ignores the items of a dict.
func (s *state) attributeOnly(v any, name string) any {
	s.spend(1)
	switch v := v.(type) {
	case undefined:
		raise.At(s.line, "%s is undefined", v.name)
	case *namespace:
		if got, ok := s.get(&v.dict, name); ok {
			return got
		}
		return undefined{name}
	case *object:
		if got, ok := v.attributes(s, name); ok {
			return got
		}
		return undefined{name}
	case *function:
		if name == "name" && v.macro != "" {
			return v.macro
		}
	case *list:
		if v.Kind == aGroup && (name == "grouper" || name == "list") {
			return v.items[slices.Index([]string{"grouper", "list"}, name)]
		}
	}
	if m, ok := s.method(v, name); ok {
		return m
	}
	return undefined{name}
}

// attribute evaluates v.name. It looks for an attribute first, and for an item second.
func (s *state) attribute(v any, name string) any {
	got := s.attributeOnly(v, name)
	if d, ok := v.(*dict); ok && isA[undefined](got) {
		if item, ok := s.get(d, name); ok {
			return item
		}
	}
	return got
}

// item evaluates v[key]. It looks for an item first, and for an attribute second.
func (s *state) item(v, key any) any {
	s.spend(1)
	at := func(n int) (int, bool) {
		i, ok := whole(key)
		if i < 0 {
			i += int64(n)
		}
		return int(i), ok && i >= 0 && i < int64(n)
	}
	switch v := v.(type) {
	case undefined:
		raise.At(s.line, "%s is undefined", v.name)
	case *dict:
		if got, ok := s.get(v, key); ok {
			return got
		}
	case *list:
		if i, ok := at(len(v.items)); ok && sequences[v.Kind].indexed {
			return v.items[i]
		}
	case string, markup:
		if text, _ := isText(v); isWhole(key) {
			s.spend(len(text) / 16)
			if i, ok := at(pytext.Runes(text)); ok {
				for _, r := range text {
					if i--; i < 0 {
						return s.sameKind(v, string(r))
					}
				}
			}
		}
	}
	if name, ok := isText(key); ok {
		return s.attributeOnly(v, name)
	}
	return undefined{"a missing item"}
}

// slice evaluates v[from:to:by]. An argument that the template omits is nil.
func (s *state) slice(v, from, to, by any) any {
	l, isList := v.(*list)
	text, isString := isText(v)
	if !isString && (!isList || !sequences[l.Kind].indexed) {
		raise.At(s.line, "%s cannot be sliced", typeName(v))
	}
	n := int64(0)
	var characters []rune
	if isString {
		s.spend(4 * len(text))
		characters = []rune(text)
		n = int64(len(characters))
	} else {
		n = int64(len(l.items))
	}
	first, last, step := s.bounds(n, from, to, by)
	if isString {
		return s.sameKind(v, string(stepped(characters, first, last, step)))
	}
	out := stepped(l.items, first, last, step)
	s.spend(16 * len(out))
	start, stride := l.bounds[0], l.bounds[2]
	return &list{items: out, Kind: l.Kind, bounds: [3]int64{
		start + first*stride, start + last*stride, stride * step,
	}}
}

// bounds computes a slice of n items. It returns the index of the first item in the slice, the index before
// which the slice ends, and the step.
func (s *state) bounds(n int64, from, to, by any) (first, last, step int64) {
	if step = 1; by != nil {
		if step = s.whole(by); step == 0 {
			raise.At(s.line, "the step of a slice must not be 0")
		}
	}
	bound := func(v any, otherwise, least, most int64) int64 {
		if v == nil {
			return otherwise
		}
		i := s.whole(v)
		if i < 0 {
			i += n
		}
		return max(least, min(i, most))
	}
	if step < 0 {
		return bound(from, n-1, -1, n-1), bound(to, -1, -1, n-1), step
	}
	return bound(from, 0, 0, n), bound(to, n, 0, n), step
}

// stepped returns every step-th item. It begins at index `first` and ends before index `last`.
func stepped[T any](items []T, first, last, step int64) (out []T) {
	n := int64(len(items))
	step = max(-n-1, min(step, n+1)) // n+1 already leads past the end, and i += step does not overflow
	for i := first; step > 0 && i < last || step < 0 && i > last; i += step {
		out = append(out, items[i])
	}
	return out
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
	}
	order := s.order(a, b)
	switch op {
	case "<":
		return order == -1
	case "<=":
		return order == -1 || order == 0
	case ">":
		return order == 1
	}
	return order == 1 || order == 0
}

func (s *state) contains(v, part any) bool {
	if text, ok := isText(v); ok {
		s.spend(len(text))
		return strings.Contains(text, s.string(part))
	}
	if isA[*dict](v) {
		s.hashable(part)
	}
	if it, ok := v.(*iterator); ok { // items after the match remain in the iterator
		next := s.iterate(it)
		for {
			item, ok := next()
			if !ok || s.equal(item, part) {
				return ok
			}
		}
	}
	return s.find(s.items(v), part) >= 0
}

// calculate evaluates a binary operator.
func (s *state) calculate(op string, a, b any) any {
	s.spend(1)
	if op == "~" { // the result is never markup, because chat templates run without autoescape
		return s.join(s.text(a), s.text(b))
	}
	if isNumber(a) && isNumber(b) {
		x, ok := whole(a)
		if y, also := whole(b); ok && also {
			return s.wholes(op, x, y)
		}
		p, _ := real(a)
		q, _ := real(b)
		return s.reals(op, p, q)
	}
	left, isString := isText(a)
	right, also := isText(b)
	switch {
	case op == "+" && isString && also:
		if isA[markup](a) || isA[markup](b) {
			return markup(s.join(string(s.escaped(a)), string(s.escaped(b))))
		}
		return s.join(left, right)
	case op == "%" && isString:
		return s.printf(a, b)
	case op == "*" && isWhole(a):
		return s.repeat(b, s.whole(a))
	case op == "*" && isWhole(b):
		return s.repeat(a, s.whole(b))
	}
	p, ok := a.(*list)
	q, also := b.(*list)
	if ok && also && op == "+" && sequences[p.Kind].like == sequences[q.Kind].like &&
		sequences[p.Kind].like <= aTuple {
		s.spend(16 * (len(p.items) + len(q.items)))
		return &list{items: slices.Concat(p.items, q.items), Kind: sequences[p.Kind].like}
	}
	raise.At(s.line, "%s %s %s is not supported", typeName(a), op, typeName(b))
	return nil
}

func (s *state) join(a, b string) string {
	s.spend(len(a) + len(b))
	return a + b
}

// repeat returns a string or a list repeated n times.
func (s *state) repeat(v any, n int64) any {
	n = max(0, min(n, int64(s.most)+1))
	if text, ok := isText(v); ok {
		s.spend(len(text) * int(n))
		return s.sameKind(v, strings.Repeat(text, int(n)))
	}
	if l, ok := v.(*list); ok && sequences[l.Kind].like <= aTuple {
		s.spend(16 * len(l.items) * int(n))
		return &list{items: slices.Repeat(l.items, int(n)), Kind: sequences[l.Kind].like}
	}
	raise.At(s.line, "%s cannot be repeated", typeName(v))
	return nil
}
