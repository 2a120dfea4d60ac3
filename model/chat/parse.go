package chat

import (
	"slices"
	"strconv"
	"strings"
)

// An expr is an expression that has been read: it gives its value. A stmt is a part of a template's body: it
// writes, and says how the loop around it goes on. Steps make a value of a value, one after the other: what
// has no end of operators is a list and does not nest, so that the stack holds whatever a template is.
type (
	expr  func(*state) any
	stmt  func(*state) flow
	steps []func(s *state, v any) any
)

func (l steps) take(s *state, v any) any {
	for _, do := range l {
		v = do(s, v)
	}
	return v
}

type flow int

const (
	on flow = iota // with what follows
	next
	leave
)

// parser makes closures of tokens. Precedences and what a name may stand for are Jinja's.
type parser struct {
	tokens []token
	at     int
	depth  int
}

func (p *parser) peek() token { return p.tokens[p.at] }

func (p *parser) take() token {
	t := p.tokens[p.at]
	if t.kind != endToken {
		p.at++
	}
	return t
}

func (p *parser) is(k kind, text string) bool { return p.peek().kind == k && p.peek().text == text }

// skip takes an operator, or a word, if it is next.
func (p *parser) skip(k kind, text string) bool {
	if p.is(k, text) {
		p.at++
		return true
	}
	return false
}

func (p *parser) want(k kind, text string) {
	if !p.skip(k, text) {
		p.unexpected(text)
	}
}

func (p *parser) unexpected(want string) {
	t := p.peek()
	what := strconv.Quote(t.text)
	if t.kind == endToken {
		what = "the end of the template"
	}
	fail(t.line, "unexpected %s, want %s", what, want)
}

func (p *parser) name() string {
	t := p.take()
	if t.kind != nameToken {
		p.at--
		p.unexpected("a name")
	}
	return t.text
}

// nest counts how deep a part is; what it returns ends the part.
func (p *parser) nest() func() {
	if p.depth++; p.depth > mostDepth {
		fail(p.peek().line, "parts nest more than %d deep", mostDepth)
	}
	return func() { p.depth-- }
}

// expression is what may stand in a tag: with commas it is a tuple.
func (p *parser) expression() expr {
	return p.tuple(p.condition, func() bool { return p.peek().kind == closeToken })
}

// tuple is an expression, or several with commas between.
func (p *parser) tuple(one func() expr, ends func() bool) expr {
	first := one()
	if !p.is(opToken, ",") {
		return first
	}
	list := []expr{first}
	for p.skip(opToken, ",") && !ends() {
		list = append(list, one())
	}
	return func(s *state) any { return s.list(list, true) }
}

// condition is a or a if b else c.
func (p *parser) condition() expr {
	defer p.nest()()
	then := p.binary(0)
	type branch struct{ test, other expr }
	var branches []branch
	for p.skip(nameToken, "if") {
		b := branch{p.binary(0), func(*state) any { return undefined{"the other branch of an if"} }}
		if p.skip(nameToken, "else") {
			b.other = p.condition()
		}
		branches = append(branches, b)
	}
	if branches == nil {
		return then
	}
	return func(s *state) any {
		for _, b := range slices.Backward(branches) { // the last is around the others
			if !truth(b.test(s)) {
				return b.other(s)
			}
		}
		return then(s)
	}
}

// levels are the binary operators, from the loosest to the tightest, but for comparisons, which stand at
// compareLevel and chain.
var levels = [][]string{{"or"}, {"and"}, {}, {"+", "-"}, {"~"}, {"*", "/", "//", "%"}, {"**"}}

const compareLevel = 2

var comparisons = []string{"==", "!=", "<", "<=", ">", ">=", "in", "not in"}

func (p *parser) binary(level int) expr {
	switch level {
	case compareLevel:
		return p.not()
	case len(levels):
		return p.unary(true)
	}
	first := p.binary(level + 1)
	var links []link
	for (p.peek().kind == opToken || level < compareLevel && p.peek().kind == nameToken) &&
		slices.Contains(levels[level], p.peek().text) {
		links = append(links, link{p.take(), p.binary(level + 1)})
	}
	if links == nil {
		return first
	}
	return func(s *state) any {
		v := first(s)
		for _, l := range links {
			switch {
			case level > compareLevel:
				v = s.calculate(l.op, v, l.right(s))
			case truth(v) == (l.op.text == "or"):
				return v
			default:
				v = l.right(s)
			}
		}
		return v
	}
}

// link is an operator with what stands on its right.
type link struct {
	op    token
	right expr
}

func (p *parser) not() expr {
	defer p.nest()()
	if p.skip(nameToken, "not") {
		e := p.not()
		return func(s *state) any { return !truth(e(s)) }
	}
	first := p.binary(compareLevel + 1)
	var links []link
	for {
		op := p.peek()
		if p.is(nameToken, "not") && p.tokens[p.at+1].text == "in" {
			p.at++
			op.text = "not in"
		}
		if op.kind != opToken && op.kind != nameToken || !slices.Contains(comparisons, op.text) {
			break
		}
		p.at++
		links = append(links, link{op, p.binary(compareLevel + 1)})
	}
	if links == nil {
		return first
	}
	return func(s *state) any {
		left := first(s)
		for _, l := range links {
			right := l.right(s)
			if !s.compare(l.op.text, left, right) {
				return false
			}
			left = right
		}
		return true
	}
}

// unary is a value with what stands before and behind it; filters bind looser than a sign.
func (p *parser) unary(filters bool) expr {
	defer p.nest()()
	var e expr
	var behind steps
	switch t := p.peek(); {
	case p.skip(opToken, "-"), p.skip(opToken, "+"):
		inner := p.unary(false)
		e = func(s *state) any { return s.calculate(t, int64(0), inner(s)) }
	default:
		e, behind = p.primary(), p.postfix()
	}
	for filters {
		switch line := p.peek().line; {
		case p.skip(opToken, "|"):
			behind = append(behind, p.filter())
		case p.skip(nameToken, "is"):
			behind = append(behind, p.test())
		case p.is(opToken, "("):
			behind = append(behind, p.call(line))
		default:
			filters = false
		}
	}
	return func(s *state) any { // every operand is one, so whatever is evaluated is counted here
		s.spend(1)
		return behind.take(s, e(s))
	}
}

// filter is the filter whose name is next.
func (p *parser) filter() func(*state, any) any {
	t := p.peek()
	name := p.name()
	f, ok := builtinFilters[name]
	if !ok {
		fail(t.line, "there is no filter %q", name)
	}
	given := p.optionalArguments()
	return func(s *state, v any) any {
		s.line = t.line
		s.spend(1)
		return f(s, v, given(s))
	}
}

// filters are those that stand here, each behind its sign.
func (p *parser) filters() (list steps) {
	for p.skip(opToken, "|") {
		list = append(list, p.filter())
	}
	return list
}

// test is the test whose name is next.
func (p *parser) test() func(*state, any) any {
	not := p.skip(nameToken, "not")
	t := p.peek()
	name := p.name()
	f, ok := builtinTests[name]
	if !ok {
		fail(t.line, "there is no test %q", name)
	}
	given := p.optionalArguments()
	words := []string{"else", "or", "and", "is", "in", "not", "if"}
	switch a := p.peek(); {
	case p.tokens[p.at-1].text == ")":
	case a.kind == nameToken && !slices.Contains(words, a.text), a.kind == stringToken, a.kind == intToken,
		a.kind == floatToken, a.kind == opToken && (a.text == "[" || a.text == "{"):
		arg, behind := p.primary(), p.postfix()
		given = func(s *state) args { return args{list: []any{behind.take(s, arg(s))}} }
	}
	return func(s *state, v any) any {
		s.spend(1)
		return f(s, v, given(s)) != not
	}
}

// postfix are the attributes, items and calls of a value.
func (p *parser) postfix() (list steps) {
	for {
		switch t := p.peek(); {
		case p.skip(opToken, "."):
			list = append(list, p.dot(t.line))
		case p.skip(opToken, "["):
			list = append(list, p.subscript(t.line))
		case p.is(opToken, "("):
			list = append(list, p.call(t.line))
		default:
			return list
		}
	}
}

// dot is an attribute, or an item by its place, whose dot was taken.
func (p *parser) dot(line int) func(*state, any) any {
	if k := p.peek(); k.kind == intToken {
		p.at++
		return func(s *state, v any) any { return s.item(v, number(k.text)) }
	}
	name := p.name()
	return func(s *state, v any) any {
		s.line = line
		return s.attribute(v, name)
	}
}

// subscript is an item or a slice, whose [ was taken.
func (p *parser) subscript(line int) func(*state, any) any {
	bound := func() expr {
		if p.is(opToken, ":") || p.is(opToken, "]") {
			return nil
		}
		return p.condition()
	}
	from := bound()
	if !p.skip(opToken, ":") {
		p.want(opToken, "]")
		if from == nil {
			fail(line, "an index is missing")
		}
		return func(s *state, v any) any {
			key := from(s)
			s.line = line
			return s.item(v, key)
		}
	}
	to, step := bound(), expr(nil)
	if p.skip(opToken, ":") {
		step = bound()
	}
	p.want(opToken, "]")
	return func(s *state, v any) any {
		at := func(e expr) any {
			if e == nil {
				return nil
			}
			return e(s)
		}
		a, b, c := at(from), at(to), at(step)
		s.line = line
		return s.slice(v, a, b, c)
	}
}

func (p *parser) call(line int) func(*state, any) any {
	given := p.optionalArguments()
	return func(s *state, f any) any {
		a := given(s)
		s.line = line
		return s.call(f, a)
	}
}

// optionalArguments are those in parentheses, if there are any.
func (p *parser) optionalArguments() func(*state) args {
	if !p.skip(opToken, "(") {
		return func(*state) args { return args{} }
	}
	var list []expr
	named := map[string]expr{}
	for !p.skip(opToken, ")") {
		if t := p.peek(); t.kind == nameToken && p.tokens[p.at+1].kind == opToken &&
			p.tokens[p.at+1].text == "=" {
			p.at += 2
			named[t.text] = p.condition()
		} else {
			list = append(list, p.condition())
		}
		if !p.is(opToken, ")") {
			p.want(opToken, ",")
		}
	}
	return func(s *state) args {
		a := args{list: make([]any, len(list))}
		for i, e := range list {
			a.list[i] = e(s)
		}
		if len(named) > 0 {
			a.named = map[string]any{}
			for name, e := range named {
				a.named[name] = e(s)
			}
		}
		return a
	}
}

// words are the names that are values.
var words = map[string]any{
	"true": true, "True": true, "false": false, "False": false, "none": nil, "None": nil,
}

func (p *parser) primary() expr {
	t := p.take()
	switch {
	case t.kind == nameToken:
		if v, ok := words[t.text]; ok {
			return func(*state) any { return v }
		}
		return func(s *state) any { return s.lookup(t) }
	case t.kind == stringToken:
		parts := []string{t.text}
		for p.peek().kind == stringToken {
			parts = append(parts, p.take().text)
		}
		text := strings.Join(parts, "")
		return func(*state) any { return text }
	case t.kind == intToken:
		v := number(t.text)
		if v == nil {
			fail(t.line, "the number %s is too large", t.text)
		}
		return func(*state) any { return v }
	case t.kind == floatToken:
		v, _ := strconv.ParseFloat(t.text, 64)
		return func(*state) any { return v }
	case t.kind == opToken && t.text == "(":
		if p.skip(opToken, ")") {
			return func(*state) any { return &list{tuple: true} }
		}
		e := p.tuple(p.condition, func() bool { return p.is(opToken, ")") })
		p.want(opToken, ")")
		return e
	case t.kind == opToken && t.text == "[":
		items := p.items("]", p.condition)
		return func(s *state) any { return s.list(items, false) }
	case t.kind == opToken && t.text == "{":
		var values []expr
		keys := p.items("}", func() expr {
			key := p.condition()
			p.want(opToken, ":")
			values = append(values, p.condition())
			return key
		})
		return func(s *state) any {
			d := &dict{}
			for i := range keys {
				s.spend(16)
				s.set(d, keys[i](s), values[i](s))
			}
			return d
		}
	}
	p.at--
	p.unexpected("an expression")
	return nil
}

// number is a whole number, nil where it is too large.
func number(digits string) any {
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return nil
	}
	return n
}

// items are parts with commas between, up to an operator that ends them.
func (p *parser) items(end string, one func() expr) (list []expr) {
	for !p.skip(opToken, end) {
		list = append(list, one())
		if !p.is(opToken, end) {
			p.want(opToken, ",")
		}
	}
	return list
}
