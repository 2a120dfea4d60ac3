package chat

import (
	"maps"
	"slices"
	"strings"

	"gpuscope/text/chat/internal/raise"
	"gpuscope/text/chat/internal/scan"
)

// body parses a part of a template. The part ends at the end of the template, or at a tag that begins with
// one of the given words. body consumes this word and returns it.
func (p *parser) body(ends ...string) (list []stmt, end string) {
	defer p.nest()()
	for {
		t := p.take()
		switch {
		case t.Kind == scan.EndToken:
			if len(ends) > 0 {
				p.unexpected("the tag " + strings.Join(ends, " or "))
			}
			return list, ""
		case t.Kind == scan.TextToken:
			list = append(list, func(s *state) flow {
				s.write(t.Text)
				return on
			})
		case t.Text == "{{":
			e := p.expression()
			p.want(scan.CloseToken, "}}")
			list = append(list, func(s *state) flow {
				s.line = t.Line
				s.write(s.text(e(s)))
				return on
			})
		default:
			word := p.name()
			if slices.Contains(ends, word) {
				return list, word
			}
			read, ok := statements[word]
			if !ok {
				raise.At(t.Line, "unexpected tag %q", word)
			}
			do := read(p, t.Line)
			list = append(list, func(s *state) flow {
				s.line = t.Line
				s.spend(1)
				return do(s)
			})
		}
	}
}

// statements maps the first word of a tag to the parser of the tag. The parser is called after this word has
// been consumed.
var statements map[string]func(p *parser, line int) stmt

func init() { // not in the declaration, because the parsers refer to this variable
	statements = map[string]func(*parser, int) stmt{
		"if": (*parser).ifTag, "for": (*parser).forTag, "set": (*parser).setTag,
		"macro": (*parser).macroTag, "call": (*parser).callTag, "filter": (*parser).filterTag,
		"with": (*parser).withTag, "generation": (*parser).generationTag, "print": (*parser).printTag,
		"break": flowTag(leave), "continue": flowTag(next),
	}
}

func (p *parser) closed() { p.want(scan.CloseToken, "%}") }

// begun parses the end of the tag that opens a block, and an optional colon before the end.
func (p *parser) begun() {
	p.skip(scan.OpToken, ":")
	p.closed()
}

// block parses the rest of a tag, its body and its end tag.
func (p *parser) block(end string) []stmt {
	p.begun()
	body, _ := p.body(end)
	p.closed()
	return body
}

func flowTag(f flow) func(*parser, int) stmt {
	return func(p *parser, line int) stmt {
		if !p.inLoop {
			raise.At(line, "break and continue are only allowed in loops")
		}
		p.closed()
		return func(*state) flow { return f }
	}
}

// generationTag parses a block that marks the model's output for training. Rendering just writes the body.
func (p *parser) generationTag(int) stmt {
	body := p.block("endgeneration")
	return func(s *state) flow { return s.run(body) }
}

func (p *parser) ifTag(int) stmt {
	type branch struct {
		test expr // nil for else
		body []stmt
	}
	var branches []branch
	for end := "if"; end != "endif"; {
		b := branch{}
		if end != "else" {
			b.test = p.withoutIf()
		}
		p.begun()
		ends := []string{"elif", "else", "endif"}
		if end == "else" {
			ends = ends[2:]
		}
		b.body, end = p.body(ends...)
		branches = append(branches, b)
	}
	p.closed()
	return func(s *state) flow {
		for _, b := range branches {
			if b.test == nil || truth(b.test(s)) {
				return s.run(b.body)
			}
		}
		return on
	}
}

// printTag parses a print tag, which writes values like {{ }}.
func (p *parser) printTag(int) stmt {
	var list []expr
	for !p.is(scan.CloseToken, "%}") {
		if list != nil {
			p.want(scan.OpToken, ",")
		}
		list = append(list, p.condition())
	}
	p.closed()
	return func(s *state) flow {
		for _, e := range list {
			s.write(s.text(e(s)))
		}
		return on
	}
}

// withoutIf parses one or more comma-separated expressions that do not contain an inline if.
func (p *parser) withoutIf() expr {
	return p.tuple(func() expr { return p.binary(0) }, func() bool {
		return p.peek().Kind == scan.CloseToken
	})
}

// target assigns a value to a variable or an attribute.
type target func(s *state, v any)

// targets parses one or more comma-separated targets. If there are several targets, each gets one item of the
// value. If `attributes` is set, a target can also be an attribute of a namespace.
func (p *parser) targets(attributes bool) target {
	list, several := []target{p.target(attributes)}, false
	for p.skip(scan.OpToken, ",") {
		several = true
		if p.is(scan.OpToken, ")") {
			break
		}
		list = append(list, p.target(attributes))
	}
	if !several {
		return list[0]
	}
	return func(s *state, v any) {
		items := s.items(v)
		if len(items) != len(list) {
			raise.At(s.line, "cannot assign %d values to %d names", len(items), len(list))
		}
		for i, t := range list {
			t(s, items[i])
		}
	}
}

func (p *parser) target(attributes bool) target {
	line := p.peek().Line
	if p.skip(scan.OpToken, "(") {
		t := p.targets(false)
		p.want(scan.OpToken, ")")
		return t
	}
	name := p.variable()
	if !attributes || !p.skip(scan.OpToken, ".") {
		return func(s *state, v any) { s.vars.vars[name] = v }
	}
	attribute := p.name()
	return func(s *state, v any) {
		n, ok := s.lookup(name).(*namespace)
		if !ok {
			raise.At(line, "%s is not a namespace", name)
		}
		s.set(&n.dict, attribute, v)
	}
}

// variable parses the name of a variable that can be set.
func (p *parser) variable() string {
	t := p.peek()
	name := p.name()
	if _, constant := words[name]; constant {
		raise.At(t.Line, "%s cannot be set", name)
	}
	return name
}

func (p *parser) forTag(line int) stmt {
	l := &loop{target: p.targets(false)}
	p.want(scan.NameToken, "in")
	over := p.withoutIf()
	if p.skip(scan.NameToken, "if") {
		l.test = p.condition()
	}
	l.recursive = p.skip(scan.NameToken, "recursive")
	p.begun()
	around := p.inLoop
	p.inLoop = true
	body, end := p.body("else", "endfor")
	p.inLoop = around
	l.body = body
	if end == "else" {
		p.begun()
		l.otherwise, _ = p.body("endfor")
	}
	p.closed()
	return func(s *state) flow {
		v := over(s)
		s.line = line
		return l.run(s, v, 0)
	}
}

func (p *parser) setTag(int) stmt {
	t := p.targets(true)
	if p.skip(scan.OpToken, "=") {
		e := p.expression()
		p.closed()
		return func(s *state) flow {
			t(s, e(s))
			return on
		}
	}
	filters := p.filters()
	body := p.block("endset")
	return func(s *state) flow {
		text, f := s.capture(body)
		if f == on {
			t(s, filters.take(s, text))
		}
		return f
	}
}

func (p *parser) filterTag(int) stmt {
	filters := append(steps{p.filter()}, p.filters()...)
	body := p.block("endfilter")
	return func(s *state) flow {
		text, f := s.capture(body)
		if f == on {
			s.write(s.string(filters.take(s, text)))
		}
		return f
	}
}

func (p *parser) withTag(int) stmt {
	var targets []target
	var values []expr
	for p.peek().Kind == scan.NameToken || p.is(scan.OpToken, "(") {
		targets = append(targets, p.targets(false))
		p.want(scan.OpToken, "=")
		values = append(values, p.condition())
		if !p.skip(scan.OpToken, ",") {
			break
		}
	}
	body := p.block("endwith")
	return func(s *state) flow {
		given := make([]any, len(targets))
		for i, e := range values {
			given[i] = e(s)
		}
		defer s.scoped(s.vars)()
		for i, t := range targets {
			t(s, given[i])
		}
		return s.run(body)
	}
}

// macro is a callable part of a template, defined by a macro tag. A call tag also defines a macro and passes
// it to another macro under the name caller.
type macro struct {
	name     string
	names    []string // parameter names
	defaults []expr   // default values; nil for a parameter that is undefined if not given
	body     []stmt
	// Each of these fields is true if the body reads the implicit variable with the name of the field. A call
	// may then have extra arguments, which are stored in this variable.
	caller, varargs, kwargs bool
}

// parameters parses the parameters of a macro or a caller and their default values.
func (p *parser) parameters(m *macro) {
	p.want(scan.OpToken, "(")
	for !p.skip(scan.OpToken, ")") {
		t := p.peek()
		m.names = append(m.names, p.variable())
		var e expr
		if p.skip(scan.OpToken, "=") {
			e = p.condition()
		} else if n := len(m.defaults); n > 0 && m.defaults[n-1] != nil {
			raise.At(t.Line, "parameter %s needs a default value because the parameter before it has one",
				t.Text)
		}
		m.defaults = append(m.defaults, e)
		if !p.is(scan.OpToken, ")") {
			p.want(scan.OpToken, ",")
		}
	}
}

func (p *parser) macroBody(m *macro, end string) {
	around, inLoop := p.used, p.inLoop
	p.used, p.inLoop = map[string]bool{}, false
	m.body = p.block(end)
	m.caller, m.varargs, m.kwargs = p.used["caller"], p.used["varargs"], p.used["kwargs"]
	if around != nil {
		maps.Copy(around, p.used)
	}
	p.used, p.inLoop = around, inLoop
}

// function returns a function that calls the macro. The macro can read the variables of the scope in which it
// was defined.
func (m *macro) function(s *state) *function {
	home := s.vars
	return &function{call: func(s *state, a args) any {
		defer s.nest("macro calls nest")()
		defer s.scoped(home)()
		s.spend(len(m.names))
		given := make([]any, len(m.names))
		missing := make([]bool, len(m.names))
		for i, name := range m.names {
			if i < len(a.list) {
				given[i] = a.list[i]
			} else {
				var ok bool
				given[i], ok = a.take(name)
				missing[i] = !ok
			}
		}
		m.extra(s, &a)
		for i, name := range m.names {
			switch v := given[i]; {
			case !missing[i]:
				s.vars.vars[name] = v
			case m.defaults[i] != nil:
				s.vars.vars[name] = m.defaults[i](s)
			default:
				s.vars.vars[name] = undefined{name}
			}
		}
		text, _ := s.capture(m.body)
		return text
	}}
}

// extra sets the variables `caller`, `varargs` and `kwargs` of a macro from the surplus arguments of a call.
func (m *macro) extra(s *state, a *args) {
	if m.caller && !slices.Contains(m.names, "caller") {
		caller, ok := a.take("caller")
		if !ok {
			caller = undefined{"caller"}
		}
		s.vars.vars["caller"] = caller
	}
	if m.kwargs {
		s.vars.vars["kwargs"] = &a.named
	} else if len(a.named.keys) > 0 {
		raise.At(s.line, "%s: unknown argument %s", m.name, a.named.keys[0])
	}
	if n := len(m.names); m.varargs {
		s.vars.vars["varargs"] = newTuple(a.list[min(n, len(a.list)):]...)
	} else if len(a.list) > n {
		raise.At(s.line, "%s: the call has %d arguments, but at most %d are allowed", m.name, len(a.list), n)
	}
}

func (p *parser) macroTag(int) stmt {
	m := &macro{name: p.variable()}
	p.parameters(m)
	p.macroBody(m, "endmacro")
	return func(s *state) flow {
		f := m.function(s)
		f.macro, s.vars.vars[m.name] = m.name, f
		return on
	}
}

func (p *parser) callTag(line int) stmt {
	m := &macro{name: "caller"}
	if p.is(scan.OpToken, "(") {
		p.parameters(m)
	}
	of := p.primary()
	trailing := p.callee()
	p.want(scan.OpToken, "(")
	given := p.arguments()
	p.macroBody(m, "endcall")
	return func(s *state) flow {
		a := given(s)
		if slices.Contains(a.named.keys, any("caller")) {
			raise.At(line, "caller is given twice")
		}
		a.named.keys = append(a.named.keys, "caller")
		a.named.values = append(a.named.values, m.function(s))
		f := trailing.take(s, of(s))
		s.line = line
		s.write(s.text(s.call(f, a)))
		return on
	}
}

// callee parses the attributes and items in the callee of a call tag.
func (p *parser) callee() (list steps) {
	for {
		switch t := p.peek(); {
		case p.skip(scan.OpToken, "."):
			list = append(list, p.dot(t.Line))
		case p.skip(scan.OpToken, "["):
			list = append(list, p.subscript(t.Line))
		default:
			return list
		}
	}
}
