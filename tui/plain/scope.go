package plain

import (
	"cmp"
	"errors"
	"slices"

	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/report"
	"gpuscope/trace/report/comparison"
	"gpuscope/trace/table"
	"gpuscope/tui/command"
	"gpuscope/tui/widget"
)

// spokenOf holds the user's choices for the tables of plain mode: the selected steps, the baseline and the
// row filter.
type spokenOf struct {
	scope  string         // selection of steps, as typed; "" means the last step
	base   string         // baseline: a selection of steps, or the path of a trace; "" for no baseline
	file   *analyze.Index // baseline trace, if base is a path
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
	p.say("tables cover %s", said)
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

// compared returns the selected steps of the trace, and their baseline, or nil if there is no baseline.
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

// print prints the named table, or the table of dispatches if `name` is empty.
func (p *front) print(name string) { p.printOf(name, p.of) }

func (p *front) printOf(name string, of spokenOf) {
	if err := p.tryPrint(name, of); err != nil {
		p.fail(err)
	}
}

// tryPrint prints a table. Before the first step, only the tables that describe the graph are available.
func (p *front) tryPrint(name string, of spokenOf) error {
	kind, err := report.TableNamed(cmp.Or(name, "dispatches"))
	if err != nil {
		return err
	}
	var o analyze.Options
	outcome := "" // what changed from the baseline
	if len(p.mirror.Trace.Steps) > 0 {
		s, against, err := p.compared(of)
		if err != nil {
			return err
		}
		o = analyze.Options{Selection: command.Part(p.index, s, against, kind.Takes), Baseline: against}
		if against != nil && kind.Compares {
			d, err := command.Compare(p.ctx, p.index, s, against)
			if err != nil {
				return err
			}
			outcome = comparison.Outcome(d)[0]
		}
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
	for _, line := range []string{outcome, l.Found} {
		if line != "" {
			p.say("%s", line)
		}
	}
	return made.Print(p.ctx, p.out, "text", l.Rows, widget.MainWidth)
}

// why explains the grid of a dispatch in the last selected step, or lists what a value affects.
func (p *front) why(name string) {
	switch {
	case name == "":
		p.fail(session.Refusef("w NAME: name missing: type a dispatch (id or name), an operator or a value"))
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

// noStep returns the error that no step has run or was recorded.
func (p *front) noStep() error {
	if p.recorded {
		return errors.New("the trace has no steps; type \"d graph\" to print its operators")
	}
	return errors.New("no step has run yet; type p TEXT to send a prompt")
}
