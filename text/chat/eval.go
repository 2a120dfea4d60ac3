package chat

import (
	"slices"
	"strings"

	"gpuscope/text/chat/internal/pytext"
	"gpuscope/text/chat/internal/raise"
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
	if s.spent += n; s.spent > s.most || n < 0 {
		raise.At(s.line, "it does not come to an end: more than %d parts and bytes were made", s.most)
	}
}

const deepValues = "values nest" // for nest

// nest counts how deep something is that calls itself; what it returns ends it.
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

// scoped begins a scope within one; what it returns goes back.
func (s *state) scoped(around *scope) func() {
	was := s.vars
	s.vars = &scope{map[string]any{}, around}
	return func() { s.vars = was }
}

// written is what do writes.
func (s *state) written(do func()) string {
	was := s.out
	s.out = &strings.Builder{}
	defer func() { s.out = was }()
	do()
	return s.out.String()
}

// capture is what a body writes, in a scope of its own. It is of no use where the body leaves the loop
// around it.
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

// list makes a list of what expressions give.
func (s *state) list(exprs []expr, kind sequence) any {
	s.spend(16 * len(exprs))
	l := &list{items: make([]any, len(exprs)), Kind: kind}
	for i, e := range exprs {
		l.items[i] = e(s)
	}
	return l
}

// attributeOnly is an attribute of a value that is no item of it.
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

// attribute is v.name: an attribute first, then an item.
func (s *state) attribute(v any, name string) any {
	got := s.attributeOnly(v, name)
	if d, ok := v.(*dict); ok && isA[undefined](got) {
		if item, ok := s.get(d, name); ok {
			return item
		}
	}
	return got
}

// item is v[key]: an item first, then an attribute.
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
	return undefined{"an item that is not there"}
}

// slice is v[from:to:by], of which nil is not given.
func (s *state) slice(v, from, to, by any) any {
	l, isList := v.(*list)
	text, isString := isText(v)
	if !isString && (!isList || !sequences[l.Kind].indexed) {
		raise.At(s.line, "%s has no slices", typeName(v))
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

// bounds are where a slice of n items begins, before which place it ends, and its step.
func (s *state) bounds(n int64, from, to, by any) (first, last, step int64) {
	if step = 1; by != nil {
		if step = s.whole(by); step == 0 {
			raise.At(s.line, "a slice goes by 0")
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

// stepped are the items from the first one up to the last, which is not one of them.
func stepped[T any](items []T, first, last, step int64) (out []T) {
	n := int64(len(items))
	step = max(-n-1, min(step, n+1)) // a larger one leads after the end as well
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
	if it, ok := v.(*iterator); ok { // items after the one that is found stay
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

// calculate is what a binary operator gives.
func (s *state) calculate(op string, a, b any) any {
	s.spend(1)
	if op == "~" {
		return s.concatenated(a, b)
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
			return s.concatenated(a, b)
		}
		return s.join(left, right)
	case op == "%" && isString:
		if m, ok := a.(markup); ok {
			return s.markupMethod(builtin{sign("%", "self, b, /"), func(s *state, a []any) any {
				return s.printf(a[0].(string), a[1])
			}}, m).call(s, args{list: []any{b}})
		}
		return s.printf(left, b)
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
	raise.At(s.line, "%s %s %s cannot be", typeName(a), op, typeName(b))
	return nil
}

// concatenated are two values as one string. Where one is markup, the other one is escaped.
func (s *state) concatenated(a, b any) any {
	if !isA[markup](a) && !isA[markup](b) {
		return s.join(s.text(a), s.text(b))
	}
	for _, v := range []*any{&a, &b} {
		if !isA[markup](*v) {
			*v = s.escaped(s.text(*v))
		}
	}
	return markup(s.join(s.text(a), s.text(b)))
}

func (s *state) join(a, b string) string {
	s.spend(len(a) + len(b))
	return a + b
}

// repeat is a string or a list so many times.
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
