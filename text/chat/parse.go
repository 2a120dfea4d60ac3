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
	inLoop bool            // break and continue are allowed
	used   map[string]bool // names that were read, for the macro around
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
	return func(s *state) any { return s.list(list, aTuple) }
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
				right := l.right(s)
				s.line = l.op.line
				v = s.calculate(l.op.text, v, right)
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
			s.line = l.op.line
			if !s.compare(l.op.text, left, right) {
				return false
			}
			left = right
		}
		return true
	}
}

// unary is a value with what stands before and after it; filters bind looser than a sign.
func (p *parser) unary(filters bool) expr {
	defer p.nest()()
	var e expr
	var trailing steps
	switch t := p.peek(); {
	case p.skip(opToken, "-"), p.skip(opToken, "+"):
		inner := p.unary(false)
		e = func(s *state) any {
			v := inner(s)
			s.line = t.line
			if t.text == "-" {
				return s.negative(v)
			}
			return s.positive(v)
		}
	default:
		e, trailing = p.primary(), p.postfix()
	}
	for filters {
		switch line := p.peek().line; {
		case p.skip(opToken, "|"):
			trailing = append(trailing, p.filter())
		case p.skip(nameToken, "is"):
			trailing = append(trailing, p.test())
		case p.is(opToken, "("):
			trailing = append(trailing, p.call(line))
		default:
			filters = false
		}
	}
	return func(s *state) any { // every operand is one, so whatever is evaluated is counted here
		s.spend(1)
		return trailing.take(s, e(s))
	}
}

// filter is the filter whose name is next.
func (p *parser) filter() func(*state, any) any {
	line := p.peek().line
	name := p.dottedName()
	given := p.optionalArguments()
	return func(s *state, v any) any {
		s.line = line
		s.spend(1)
		f := s.filter(name)
		a := given(s)
		s.line = line
		return s.invoke(f, v, a)
	}
}

// dottedName is the name of a filter or a test, which may have dots.
func (p *parser) dottedName() string {
	name := p.name()
	for p.skip(opToken, ".") {
		name += "." + p.name()
	}
	return name
}

// filters are those that stand here, each after its sign.
func (p *parser) filters() (list steps) {
	for p.skip(opToken, "|") {
		list = append(list, p.filter())
	}
	return list
}

// test is the test whose name is next.
func (p *parser) test() func(*state, any) any {
	not := p.skip(nameToken, "not")
	line := p.peek().line
	name := p.dottedName()
	given := p.optionalArguments()
	switch a := p.peek(); {
	case p.tokens[p.at-1].text == ")":
	case p.is(nameToken, "is"):
		fail(a.line, "tests with is do not chain")
	case a.kind == nameToken && !slices.Contains([]string{"else", "or", "and"}, a.text),
		a.kind == stringToken, a.kind == intToken, a.kind == floatToken,
		a.kind == opToken && (a.text == "[" || a.text == "{"):
		arg, trailing := p.primary(), p.postfix()
		given = func(s *state) args { return args{list: []any{trailing.take(s, arg(s))}} }
	}
	return func(s *state, v any) any {
		s.line = line
		s.spend(1)
		t := s.test(name)
		a := given(s)
		s.line = line
		return truth(s.invoke(t, v, a)) != not
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
		key := number(k)
		return func(s *state, v any) any { return s.item(v, key) }
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
	return p.arguments()
}

// arguments are those of a call, whose ( was taken: values, names with values, and * and ** before what has
// more of them.
func (p *parser) arguments() func(*state) args {
	type argument struct {
		sign, name string
		value      expr
	}
	var list []argument
	last := 0
	for !p.skip(opToken, ")") {
		a, rank, t := argument{}, 0, p.peek()
		switch {
		case p.skip(opToken, "*"):
			a.sign, rank = "*", 2
		case p.skip(opToken, "**"):
			a.sign, rank = "**", 3
		case t.kind == nameToken && p.tokens[p.at+1].kind == opToken && p.tokens[p.at+1].text == "=":
			p.at += 2
			a.name, rank = t.text, 1
		}
		if rank < last && (rank != 1 || last == 3) || rank == last && rank > 1 {
			fail(t.line, "an argument is in the wrong place")
		}
		a.value = p.condition()
		list, last = append(list, a), max(last, rank)
		if !p.is(opToken, ")") {
			p.want(opToken, ",")
		}
	}
	return func(s *state) args {
		var a args
		name := func(key, v any) {
			if slices.Contains(a.named.keys, key) {
				fail(s.line, "the argument %s is given twice", s.text(key))
			}
			a.named.keys, a.named.values = append(a.named.keys, key), append(a.named.values, v)
		}
		s.spend(4 * len(list))
		for _, g := range list {
			v := g.value(s)
			switch {
			case g.name != "":
				name(g.name, v)
			case g.sign == "*":
				a.list = slices.Concat(a.list, s.items(v))
			case g.sign == "**":
				d, ok := v.(*dict)
				if !ok {
					fail(s.line, "** wants a dict, not %s", typeName(v))
				}
				for i, key := range d.keys {
					name(s.string(key), d.values[i])
				}
			default:
				a.list = append(a.list, v)
			}
		}
		s.spend(16 * (len(a.list) + len(a.named.keys)))
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
		if p.used != nil {
			p.used[t.text] = true
		}
		return func(s *state) any { return s.lookup(t.text) }
	case t.kind == stringToken:
		parts := []string{t.text}
		for p.peek().kind == stringToken {
			parts = append(parts, p.take().text)
		}
		text := strings.Join(parts, "")
		return func(*state) any { return text }
	case t.kind == intToken:
		v := number(t)
		return func(*state) any { return v }
	case t.kind == floatToken:
		v, _ := strconv.ParseFloat(t.text, 64)
		return func(*state) any { return v }
	case t.kind == opToken && t.text == "(":
		if p.skip(opToken, ")") {
			return func(*state) any { return newTuple() }
		}
		e := p.tuple(p.condition, func() bool { return p.is(opToken, ")") })
		p.want(opToken, ")")
		return e
	case t.kind == opToken && t.text == "[":
		items := p.items("]", p.condition)
		return func(s *state) any { return s.list(items, aList) }
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

// number is a whole number.
func number(t token) any {
	n, err := strconv.ParseInt(t.text, 0, 64)
	if err != nil {
		fail(t.line, "the number %s does not fit into 64 bits", t.text)
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
