package chat

import (
	"slices"
	"strconv"
	"strings"
)

// An expr is an expression that has been read: it gives its value. A stmt is a part of a template's body: it
// writes, and says how the loop around it goes on.
type (
	expr func(*state) any
	stmt func(*state) flow
)

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
	e := p.binary(0)
	for p.skip(nameToken, "if") {
		then, test := e, p.binary(0)
		other := expr(func(*state) any { return undefined{"the other branch of an if"} })
		if p.skip(nameToken, "else") {
			other = p.condition()
		}
		e = func(s *state) any {
			if truth(test(s)) {
				return then(s)
			}
			return other(s)
		}
	}
	return e
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
	e := p.binary(level + 1)
	for (p.peek().kind == opToken || level < compareLevel && p.peek().kind == nameToken) &&
		slices.Contains(levels[level], p.peek().text) {
		op, left := p.take(), e
		right := p.binary(level + 1)
		switch op.text {
		case "or", "and":
			e = func(s *state) any {
				if v := left(s); truth(v) == (op.text == "or") {
					return v
				}
				return right(s)
			}
		default:
			e = func(s *state) any { return s.calculate(op, left(s), right(s)) }
		}
	}
	return e
}

func (p *parser) not() expr {
	defer p.nest()()
	if p.skip(nameToken, "not") {
		e := p.not()
		return func(s *state) any { return !truth(e(s)) }
	}
	first := p.binary(compareLevel + 1)
	type link struct {
		op    string
		right expr
	}
	var links []link
	for {
		op := p.peek().text
		if p.is(nameToken, "not") && p.tokens[p.at+1].text == "in" {
			p.at++
			op = "not in"
		}
		if k := p.peek().kind; k != opToken && k != nameToken || !slices.Contains(comparisons, op) {
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
			if !s.compare(l.op, left, right) {
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
	switch t := p.peek(); {
	case p.skip(opToken, "-"), p.skip(opToken, "+"):
		inner := p.unary(false)
		e = func(s *state) any { return s.calculate(t, int64(0), inner(s)) }
	default:
		e = p.postfix(p.primary())
	}
	for filters {
		switch line := p.peek().line; {
		case p.skip(opToken, "|"):
			e = p.filter(e)
		case p.skip(nameToken, "is"):
			e = p.test(e)
		case p.is(opToken, "("):
			e = p.call(e, line)
		default:
			filters = false
		}
	}
	return func(s *state) any { // every operand is one, so whatever is evaluated is counted here
		s.spend(1)
		return e(s)
	}
}

// filter is the filter whose name is next, of a value.
func (p *parser) filter(of expr) expr {
	t := p.peek()
	name := p.name()
	f, ok := builtinFilters[name]
	if !ok {
		fail(t.line, "there is no filter %q", name)
	}
	given := p.optionalArguments()
	return func(s *state) any {
		v := of(s)
		s.line = t.line
		s.spend(1)
		return f(s, v, given(s))
	}
}

// test is the test whose name is next, of a value.
func (p *parser) test(of expr) expr {
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
		arg := p.postfix(p.primary())
		given = func(s *state) args { return args{list: []any{arg(s)}} }
	}
	return func(s *state) any {
		v := of(s)
		s.spend(1)
		return f(s, v, given(s)) != not
	}
}

// postfix is a value with its attributes, items and calls.
func (p *parser) postfix(e expr) expr {
	for {
		t := p.peek()
		of := e
		switch {
		case p.skip(opToken, "."):
			if k := p.peek(); k.kind == intToken {
				p.at++
				e = func(s *state) any { return s.item(of(s), number(k.text)) }
				continue
			}
			name := p.name()
			e = func(s *state) any {
				v := of(s)
				s.line = t.line
				return s.attribute(v, name)
			}
		case p.skip(opToken, "["):
			e = p.subscript(of, t.line)
		case p.is(opToken, "("):
			e = p.call(of, t.line)
		default:
			return e
		}
	}
}

// subscript is an item or a slice of a value, whose [ was taken.
func (p *parser) subscript(of expr, line int) expr {
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
		return func(s *state) any {
			v := of(s)
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
	return func(s *state) any {
		at := func(e expr) any {
			if e == nil {
				return nil
			}
			return e(s)
		}
		v := of(s)
		a, b, c := at(from), at(to), at(step)
		s.line = line
		return s.slice(v, a, b, c)
	}
}

func (p *parser) call(of expr, line int) expr {
	given := p.optionalArguments()
	return func(s *state) any {
		f := of(s)
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
