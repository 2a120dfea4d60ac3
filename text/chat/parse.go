package chat

import (
	"slices"
	"strconv"
	"strings"

	"gpuscope/text/chat/internal/raise"
	"gpuscope/text/chat/internal/scan"
)

// The results of parsing are closures. An expr evaluates an expression. A stmt executes a part of a
// template's body: it writes output and returns how the surrounding loop continues. steps is a chain of
// operators, such as filters. It is a list and not a nest of closures, because a long chain could otherwise
// overflow the stack.
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
	on flow = iota // continue with the next statement
	next
	leave
)

// parser converts tokens to closures. Operator precedence and the meaning of names follow Jinja.
type parser struct {
	tokens []scan.Token
	at     int
	depth  int
	inLoop bool            // whether break and continue are allowed
	used   map[string]bool // variables that the body of the enclosing macro reads
}

func (p *parser) peek() scan.Token { return p.tokens[p.at] }

func (p *parser) take() scan.Token {
	t := p.tokens[p.at]
	if t.Kind != scan.EndToken {
		p.at++
	}
	return t
}

func (p *parser) is(k scan.Kind, text string) bool {
	return p.peek().Kind == k && p.peek().Text == text
}

// skip consumes the next token if it is the given operator or word. It reports whether the token was
// consumed.
func (p *parser) skip(k scan.Kind, text string) bool {
	if p.is(k, text) {
		p.at++
		return true
	}
	return false
}

func (p *parser) want(k scan.Kind, text string) {
	if !p.skip(k, text) {
		p.unexpected(text)
	}
}

func (p *parser) unexpected(want string) {
	t := p.peek()
	what := strconv.Quote(t.Text)
	if t.Kind == scan.EndToken {
		what = "the end of the template"
	}
	raise.At(t.Line, "unexpected %s, want %s", what, want)
}

func (p *parser) name() string {
	t := p.take()
	if t.Kind != scan.NameToken {
		p.at--
		p.unexpected("a name")
	}
	return t.Text
}

// nest must be called at the start of a nested part. It raises an error if parts nest too deep. The returned
// function must be called at the end of the part.
func (p *parser) nest() func() {
	if p.depth++; p.depth > mostDepth {
		raise.At(p.peek().Line, "the template nests more than %d levels deep", mostDepth)
	}
	return func() { p.depth-- }
}

// expression parses the expression of a tag. Commas make a tuple.
func (p *parser) expression() expr {
	return p.tuple(p.condition, func() bool { return p.peek().Kind == scan.CloseToken })
}

// tuple parses one expression, or a tuple of comma-separated expressions.
func (p *parser) tuple(one func() expr, ends func() bool) expr {
	first := one()
	if !p.is(scan.OpToken, ",") {
		return first
	}
	list := []expr{first}
	for p.skip(scan.OpToken, ",") && !ends() {
		list = append(list, one())
	}
	return func(s *state) any { return s.list(list, aTuple) }
}

// condition parses an expression with an optional inline if: a if b else c.
func (p *parser) condition() expr {
	defer p.nest()()
	then := p.binary(0)
	type branch struct{ test, other expr }
	var branches []branch
	for p.skip(scan.NameToken, "if") {
		b := branch{p.binary(0), func(*state) any { return undefined{"the value of an if expression without else"} }}
		if p.skip(scan.NameToken, "else") {
			b.other = p.condition()
		}
		branches = append(branches, b)
	}
	if branches == nil {
		return then
	}
	return func(s *state) any {
		for _, b := range slices.Backward(branches) { // the last inline if is evaluated first
			if !truth(b.test(s)) {
				return b.other(s)
			}
		}
		return then(s)
	}
}

// levels lists the binary operators from the lowest to the highest precedence. Comparisons are at
// compareLevel and are parsed separately because they can be chained.
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
	for (p.peek().Kind == scan.OpToken || level < compareLevel && p.peek().Kind == scan.NameToken) &&
		slices.Contains(levels[level], p.peek().Text) {
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
				s.line = l.op.Line
				v = s.calculate(l.op.Text, v, right)
			case truth(v) == (l.op.Text == "or"):
				return v
			default:
				v = l.right(s)
			}
		}
		return v
	}
}

// link is one operator of a chain, with its right operand.
type link struct {
	op    scan.Token
	right expr
}

func (p *parser) not() expr {
	defer p.nest()()
	if p.skip(scan.NameToken, "not") {
		e := p.not()
		return func(s *state) any { return !truth(e(s)) }
	}
	first := p.binary(compareLevel + 1)
	var links []link
	for {
		op := p.peek()
		if p.is(scan.NameToken, "not") && p.tokens[p.at+1].Text == "in" {
			p.at++
			op.Text = "not in"
		}
		if op.Kind != scan.OpToken && op.Kind != scan.NameToken || !slices.Contains(comparisons, op.Text) {
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
			s.line = l.op.Line
			if !s.compare(l.op.Text, left, right) {
				return false
			}
			left = right
		}
		return true
	}
}

// unary parses an operand with its signs, attributes, calls and filters. A sign binds tighter than a
// filter.
func (p *parser) unary(filters bool) expr {
	defer p.nest()()
	var e expr
	var trailing steps
	switch t := p.peek(); {
	case p.skip(scan.OpToken, "-"), p.skip(scan.OpToken, "+"):
		inner := p.unary(false)
		e = func(s *state) any {
			v := inner(s)
			s.line = t.Line
			if t.Text == "-" {
				return s.negative(v)
			}
			return s.positive(v)
		}
	default:
		e, trailing = p.primary(), p.postfix()
	}
	for filters {
		switch line := p.peek().Line; {
		case p.skip(scan.OpToken, "|"):
			trailing = append(trailing, p.filter())
		case p.skip(scan.NameToken, "is"):
			trailing = append(trailing, p.test())
		case p.is(scan.OpToken, "("):
			trailing = append(trailing, p.call(line))
		default:
			filters = false
		}
	}
	return func(s *state) any { // every operand is evaluated here, so all evaluated parts are counted
		s.spend(1)
		return trailing.take(s, e(s))
	}
}

// filter parses a filter.
func (p *parser) filter() func(*state, any) any {
	line := p.peek().Line
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

// dottedName parses the name of a filter or a test, which may contain dots.
func (p *parser) dottedName() string {
	name := p.name()
	for p.skip(scan.OpToken, ".") {
		name += "." + p.name()
	}
	return name
}

// filters parses a chain of filters, each after a |.
func (p *parser) filters() (list steps) {
	for p.skip(scan.OpToken, "|") {
		list = append(list, p.filter())
	}
	return list
}

// test parses a test, which follows the word `is`.
func (p *parser) test() func(*state, any) any {
	not := p.skip(scan.NameToken, "not")
	line := p.peek().Line
	name := p.dottedName()
	given := p.optionalArguments()
	switch a := p.peek(); {
	case p.tokens[p.at-1].Text == ")":
	case p.is(scan.NameToken, "is"):
		raise.At(a.Line, "one test cannot follow another: unexpected is")
	case a.Kind == scan.NameToken && !slices.Contains([]string{"else", "or", "and"}, a.Text),
		a.Kind == scan.StringToken, a.Kind == scan.IntToken, a.Kind == scan.FloatToken,
		a.Kind == scan.OpToken && (a.Text == "[" || a.Text == "{"):
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

// postfix parses the attributes, items and calls after a value.
func (p *parser) postfix() (list steps) {
	for {
		switch t := p.peek(); {
		case p.skip(scan.OpToken, "."):
			list = append(list, p.dot(t.Line))
		case p.skip(scan.OpToken, "["):
			list = append(list, p.subscript(t.Line))
		case p.is(scan.OpToken, "("):
			list = append(list, p.call(t.Line))
		default:
			return list
		}
	}
}

// dot parses what follows the dot in v.name or v.0: the name of an attribute, or the number of an item.
func (p *parser) dot(line int) func(*state, any) any {
	if k := p.peek(); k.Kind == scan.IntToken {
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

// subscript parses an index or a slice after its opening bracket.
func (p *parser) subscript(line int) func(*state, any) any {
	bound := func() expr {
		if p.is(scan.OpToken, ":") || p.is(scan.OpToken, "]") {
			return nil
		}
		return p.condition()
	}
	from := bound()
	if !p.skip(scan.OpToken, ":") {
		p.want(scan.OpToken, "]")
		if from == nil {
			raise.At(line, "the index between [ and ] is missing")
		}
		return func(s *state, v any) any {
			key := from(s)
			s.line = line
			return s.item(v, key)
		}
	}
	to, step := bound(), expr(nil)
	if p.skip(scan.OpToken, ":") {
		step = bound()
	}
	p.want(scan.OpToken, "]")
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

// optionalArguments parses the arguments in parentheses, if there are any.
func (p *parser) optionalArguments() func(*state) args {
	if !p.skip(scan.OpToken, "(") {
		return func(*state) args { return args{} }
	}
	return p.arguments()
}

// arguments parses the arguments of a call after the opening parenthesis: positional arguments, named
// arguments, and the unpacking arguments *list and **dict.
func (p *parser) arguments() func(*state) args {
	type argument struct {
		sign, name string
		value      expr
	}
	var list []argument
	last := 0
	for !p.skip(scan.OpToken, ")") {
		a, rank, t := argument{}, 0, p.peek()
		switch {
		case p.skip(scan.OpToken, "*"):
			a.sign, rank = "*", 2
		case p.skip(scan.OpToken, "**"):
			a.sign, rank = "**", 3
		case t.Kind == scan.NameToken && p.tokens[p.at+1].Kind == scan.OpToken &&
			p.tokens[p.at+1].Text == "=":
			p.at += 2
			a.name, rank = t.Text, 1
		}
		if rank < last && (rank != 1 || last == 3) || rank == last && rank > 1 {
			raise.At(t.Line, "the arguments are in the wrong order: positional ones come first, then *, and ** comes last")
		}
		a.value = p.condition()
		list, last = append(list, a), max(last, rank)
		if !p.is(scan.OpToken, ")") {
			p.want(scan.OpToken, ",")
		}
	}
	return func(s *state) args {
		var a args
		name := func(key, v any) {
			if slices.Contains(a.named.keys, key) {
				raise.At(s.line, "the argument %s is given twice", s.text(key))
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
					raise.At(s.line, "** needs a dict, not %s", typeName(v))
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

// words maps the names of constants, such as true and none, to their values.
var words = map[string]any{
	"true": true, "True": true, "false": false, "False": false, "none": nil, "None": nil,
}

func (p *parser) primary() expr {
	t := p.take()
	switch {
	case t.Kind == scan.NameToken:
		if v, ok := words[t.Text]; ok {
			return func(*state) any { return v }
		}
		if p.used != nil {
			p.used[t.Text] = true
		}
		return func(s *state) any { return s.lookup(t.Text) }
	case t.Kind == scan.StringToken:
		parts := []string{t.Text}
		for p.peek().Kind == scan.StringToken {
			parts = append(parts, p.take().Text)
		}
		text := strings.Join(parts, "")
		return func(*state) any { return text }
	case t.Kind == scan.IntToken:
		v := number(t)
		return func(*state) any { return v }
	case t.Kind == scan.FloatToken:
		v, _ := strconv.ParseFloat(t.Text, 64)
		return func(*state) any { return v }
	case t.Kind == scan.OpToken && t.Text == "(":
		if p.skip(scan.OpToken, ")") {
			return func(*state) any { return newTuple() }
		}
		e := p.tuple(p.condition, func() bool { return p.is(scan.OpToken, ")") })
		p.want(scan.OpToken, ")")
		return e
	case t.Kind == scan.OpToken && t.Text == "[":
		items := p.items("]", p.condition)
		return func(s *state) any { return s.list(items, aList) }
	case t.Kind == scan.OpToken && t.Text == "{":
		var values []expr
		keys := p.items("}", func() expr {
			key := p.condition()
			p.want(scan.OpToken, ":")
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

// number returns the value of an integer token.
func number(t scan.Token) any {
	n, err := strconv.ParseInt(t.Text, 0, 64)
	if err != nil {
		raise.At(t.Line, "the number %s does not fit into 64 bits", t.Text)
	}
	return n
}

// items parses comma-separated items up to the closing operator.
func (p *parser) items(end string, one func() expr) (list []expr) {
	for !p.skip(scan.OpToken, end) {
		list = append(list, one())
		if !p.is(scan.OpToken, end) {
			p.want(scan.OpToken, ",")
		}
	}
	return list
}
