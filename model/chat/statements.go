package chat

import (
	"slices"
	"strings"
)

// body reads up to the end of the template, or to a tag that begins with one of the words, whose word was
// taken then.
func (p *parser) body(ends ...string) (list []stmt, end string) {
	defer p.nest()()
	for {
		t := p.take()
		switch {
		case t.kind == endToken:
			if len(ends) > 0 {
				p.unexpected("the tag " + strings.Join(ends, " or "))
			}
			return list, ""
		case t.kind == textToken:
			list = append(list, func(s *state) flow {
				s.write(t.text)
				return on
			})
		case t.text == "{{":
			e := p.expression()
			p.want(closeToken, "}}")
			list = append(list, func(s *state) flow {
				s.line = t.line
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
				fail(t.line, "there is no tag %q here", word)
			}
			do := read(p, t.line)
			list = append(list, func(s *state) flow {
				s.line = t.line
				s.spend(1)
				return do(s)
			})
		}
	}
}

// statements are the tags, by their first word, which was taken.
var statements map[string]func(p *parser, line int) stmt

func init() { // they hold bodies, which hold them
	statements = map[string]func(*parser, int) stmt{
		"if": (*parser).ifTag, "for": (*parser).forTag, "set": (*parser).setTag,
		"macro": (*parser).macroTag, "call": (*parser).callTag, "filter": (*parser).filterTag,
		"with": (*parser).withTag, "generation": (*parser).generationTag,
		"break": flowTag(leave), "continue": flowTag(next),
	}
}

func (p *parser) closed() { p.want(closeToken, "%}") }

// block is the body of a tag, whose end is taken too, up to its end tag.
func (p *parser) block(end string) []stmt {
	p.closed()
	body, _ := p.body(end)
	p.closed()
	return body
}

func flowTag(f flow) func(*parser, int) stmt {
	return func(p *parser, _ int) stmt {
		p.closed()
		return func(*state) flow { return f }
	}
}

// generationTag marks what the model says, for training; here it says nothing.
func (p *parser) generationTag(int) stmt {
	body := p.block("endgeneration")
	return func(s *state) flow { return s.run(body) }
}

func (p *parser) ifTag(int) stmt {
	type branch struct {
		test expr // nil: else
		body []stmt
	}
	var branches []branch
	for end := "if"; end != "endif"; {
		b := branch{}
		if end != "else" {
			b.test = p.expression()
		}
		p.closed()
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

// targets are the names that a value is given, several where it is taken apart.
func (p *parser) targets() []string {
	names := []string{p.name()}
	for p.skip(opToken, ",") && p.peek().kind == nameToken {
		names = append(names, p.name())
	}
	return names
}

// assign gives a value to names, taken apart where there are several.
func (s *state) assign(names []string, v any) {
	if len(names) == 1 {
		s.vars.vars[names[0]] = v
		return
	}
	items := s.items(v)
	if len(items) != len(names) {
		fail(s.line, "%d values for the %d names %s", len(items), len(names), strings.Join(names, ", "))
	}
	for i, name := range names {
		s.vars.vars[name] = items[i]
	}
}

func (p *parser) forTag(line int) stmt {
	names := p.targets()
	p.want(nameToken, "in")
	without := func() expr { return p.binary(0) } // an if, which belongs to the loop
	over := p.tuple(without, func() bool { return p.peek().kind == closeToken })
	var test expr
	if p.skip(nameToken, "if") {
		test = p.condition()
	}
	recursive := p.skip(nameToken, "recursive")
	p.closed()
	body, end := p.body("else", "endfor")
	var otherwise []stmt
	if end == "else" {
		p.closed()
		otherwise, _ = p.body("endfor")
	}
	p.closed()
	l := &loop{names, test, body, otherwise, recursive}
	return func(s *state) flow {
		v := over(s)
		s.line = line
		s.loop(l, v, 0)
		return on
	}
}

func (p *parser) setTag(line int) stmt {
	if p.tokens[p.at+1].text == "." { // of a namespace
		space, _, name := p.name(), p.take(), p.name()
		p.want(opToken, "=")
		e := p.expression()
		p.closed()
		return func(s *state) flow {
			v := e(s)
			n, ok := s.lookup(token{nameToken, space, line}).(*namespace)
			if !ok {
				fail(line, "%s is no namespace", space)
			}
			s.set(&n.dict, name, v)
			return on
		}
	}
	names := p.targets()
	if p.skip(opToken, "=") {
		e := p.expression()
		p.closed()
		return func(s *state) flow {
			s.assign(names, e(s))
			return on
		}
	}
	filters := p.filters()
	body := p.block("endset")
	return func(s *state) flow {
		s.assign(names, filters.take(s, s.capture(body)))
		return on
	}
}

func (p *parser) filterTag(int) stmt {
	filters := append(steps{p.filter()}, p.filters()...)
	body := p.block("endfilter")
	return func(s *state) flow {
		s.write(s.text(filters.take(s, s.capture(body))))
		return on
	}
}

func (p *parser) withTag(int) stmt {
	var names []string
	var values []expr
	for p.peek().kind == nameToken {
		names = append(names, p.name())
		p.want(opToken, "=")
		values = append(values, p.condition())
		p.skip(opToken, ",")
	}
	body := p.block("endwith")
	return func(s *state) flow {
		given := make([]any, len(names))
		for i, e := range values {
			given[i] = e(s)
		}
		defer s.scoped(s.vars)()
		for i, name := range names {
			s.vars.vars[name] = given[i]
		}
		return s.run(body)
	}
}

// parameters are those of a macro or a caller, with what they are where nothing is given.
type parameters struct {
	names    []string
	defaults []expr // nil: undefined
}

func (p *parser) parameters() (list parameters) {
	if !p.skip(opToken, "(") {
		return list
	}
	for !p.skip(opToken, ")") {
		list.names = append(list.names, p.name())
		var e expr
		if p.skip(opToken, "=") {
			e = p.condition()
		}
		list.defaults = append(list.defaults, e)
		if !p.is(opToken, ")") {
			p.want(opToken, ",")
		}
	}
	return list
}

// macro is what a call of a body gives, which sees the variables of where it was defined.
func (s *state) macro(name string, list parameters, body []stmt) callable {
	home := s.vars
	return func(s *state, a args) any {
		defer s.nest("macros call one another")()
		if len(a.list) > len(list.names) {
			fail(s.line, "%s takes %d values, not %d", name, len(list.names), len(a.list))
		}
		defer s.scoped(home)()
		s.spend(len(list.names))
		for i, parameter := range list.names {
			v, given := a.named[parameter]
			switch {
			case i < len(a.list):
				v = a.list[i]
			case given:
			case list.defaults[i] != nil:
				v = list.defaults[i](s)
			default:
				v = undefined{parameter}
			}
			s.vars.vars[parameter] = v
		}
		s.vars.vars["caller"] = undefined{"caller"}
		if caller, ok := a.named["caller"]; ok {
			s.vars.vars["caller"] = caller
		}
		return s.capture(body)
	}
}

func (p *parser) macroTag(int) stmt {
	name, list := p.name(), p.parameters()
	body := p.block("endmacro")
	return func(s *state) flow {
		s.vars.vars[name] = s.macro(name, list, body)
		return on
	}
}

func (p *parser) callTag(line int) stmt {
	list := p.parameters()
	of := p.primary()
	var dots steps
	for p.skip(opToken, ".") {
		dots = append(dots, p.dot(line))
	}
	given := p.optionalArguments()
	body := p.block("endcall")
	return func(s *state) flow {
		a := given(s)
		if a.named == nil {
			a.named = map[string]any{}
		}
		a.named["caller"] = s.macro("caller", list, body)
		f := dots.take(s, of(s))
		s.line = line
		s.write(s.text(s.call(f, a)))
		return on
	}
}
