package plain

import (
	"cmp"
	"errors"
	"slices"

	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/report"
	"gpuscope/trace/table"
	"gpuscope/tui/command"
	"gpuscope/tui/widget"
)

// spokenOf is what a person wants the tables of plain mode to speak of, as on the screen: a scope, what it is
// compared with, and which rows.
type spokenOf struct {
	scope  string         // "" is the last step
	base   string         // a scope, or the path of file; "" for nothing
	file   *analyze.Index // another trace
	filter string
}

func (p *front) setScope(word string) {
	said := "the last step"
	if word != "" {
		s, err := p.index.ParseSelection(word)
		if err != nil {
			p.fail(err)
			return
		}
		said = report.SelectionText(s)
	}
	p.of.scope = word
	p.say("tables show %s", said)
}

func (p *front) setBase(word string) {
	of := p.of
	of.base, of.file = word, nil
	said := "nothing"
	if path := command.Expand(word); word != "" {
		s, err := p.index.ParseSelection(word)
		if said = report.SelectionText(s); err != nil && trace.IsTrace(path) {
			of.file, err = command.ReadBase(p.ctx, path)
			said = "the steps of the same phase in " + path
			if err == nil {
				said = widget.Joined("; ", said, report.OtherTrace(p.index, of.file).Text)
			}
		}
		if err != nil {
			p.fail(err)
			return
		}
	}
	p.of = of
	p.say("baseline of tables: %s", said)
}

func (p *front) setFilter(words string) {
	if err := table.CheckFilter(words); err != nil {
		p.fail(err)
		return
	}
	p.of.filter = words
	p.say("rows shown in tables: %s", cmp.Or(words, "all"))
}

// compared is the steps that tables are asked for, of those that the trace has, and what they are compared
// with.
func (p *front) compared(of spokenOf) (s analyze.Selection, against *analyze.Baseline, err error) {
	if s, err = p.index.ParseSelection(cmp.Or(of.scope, "last")); err != nil || of.base == "" {
		return s, nil, err
	}
	if of.file != nil {
		return s, command.SameKind(of.file, of.base, p.index, s), nil
	}
	base, err := p.index.ParseSelection(of.base)
	if !slices.Equal(base.Steps, s.Steps) {
		against = &analyze.Baseline{Index: p.index, Selection: base}
	}
	return s, against, err
}

// print prints a table, that of dispatches where no other is named.
func (p *front) print(name string) { p.printOf(name, p.of) }

func (p *front) printOf(name string, of spokenOf) {
	if err := p.tryPrint(name, of); err != nil {
		p.fail(err)
	}
}

// tryPrint prints a table. Before the first step there are tables of the graph.
func (p *front) tryPrint(name string, of spokenOf) error {
	kind, err := report.TableNamed(cmp.Or(name, "dispatches"))
	if err != nil {
		return err
	}
	var o analyze.Options
	if len(p.mirror.Trace.Steps) > 0 {
		s, against, err := p.compared(of)
		if err != nil {
			return err
		}
		o = analyze.Options{Selection: command.Part(p.index, s, kind.Takes), Baseline: against}
	} else if !kind.OfGraph && kind.Takes != report.NoSteps {
		return p.noStep()
	}
	made, err := kind.Of(p.ctx, p.index, o)
	if err != nil {
		return err
	}
	l, err := widget.Listed(p.ctx, made, widget.Choice{Typed: of.filter}, "", true)
	if err := cmp.Or(err, l.Err); err != nil {
		return err
	}
	if l.Found != "" {
		p.say("%s", l.Found)
	}
	return made.Print(p.ctx, p.out, "text", l.Rows, widget.MainWidth)
}

// why says why a dispatch has the grid it has, in the last step of the scope, or what a value reaches.
func (p *front) why(name string) {
	switch {
	case name == "":
		p.fail(session.Refusef("w NAME: want a dispatch (id or name), an operator or a value"))
		return
	case len(p.mirror.Trace.Steps) == 0:
		p.fail(p.noStep())
		return
	}
	s, _, err := p.compared(spokenOf{scope: p.of.scope})
	var lines []string
	if err == nil {
		lines, err = report.Explain(p.index, s.Last(), name)
	}
	if err != nil {
		p.fail(err)
		return
	}
	for _, l := range lines {
		p.say("%s", l)
	}
}

// noStep says that there is nothing to show of a step.
func (p *front) noStep() error {
	if p.recorded {
		return errors.New("the trace has no steps; d graph prints its operators")
	}
	return errors.New("no step has run yet: p TEXT sets a prompt")
}
