package tui

import (
	"context"
	"fmt"

	"gpuscope/internal/printable"
	"gpuscope/trace"
	"gpuscope/trace/inspect"
	"gpuscope/trace/table"
	"gpuscope/tui/command"
	"gpuscope/tui/widget"
)

// listPage is what views of one table of the registry have in common.
type listPage struct {
	basics
	rows widget.TablePane
	from inspect.Table
}

// listOf is the page of a table. Tables are registered before the program starts.
func listOf(name string) listPage {
	t, err := inspect.TableNamed(name)
	if err != nil {
		panic(err)
	}
	return listPage{from: t}
}

func (p *listPage) takes() inspect.Takes { return p.from.Takes }

// listKey is what a table is of. The version rises with every change of scope and base as well.
type listKey struct {
	version int
	fold    inspect.Fold
}

// want shows the table of the snapshot's scope.
func (p *listPage) want(j *widget.Jobs, s snapshot, fold inspect.Fold) {
	if s.step < 0 || s.trace == nil {
		p.rows.Unload(j)
		return
	}
	o := s.options(p.from.Takes, fold)
	p.rows.Load(j, listKey{s.version, fold}, s, s.running,
		func(ctx context.Context) (*table.Table, error) { return p.from.Of(ctx, s.index, o) })
}

func (p *listPage) pane() *widget.TablePane { return &p.rows }

func (p *listPage) move(m widget.Motion) { p.rows.Move(m) }

func (p *listPage) filter() *filter { return &filter{p.rows.Wanted.Typed, p.rows.SetFilter} }

// actions are those of all rows; the program has its own way to do them.
func (p *listPage) actions() []command.Action {
	return []command.Action{
		{Name: "open"}, {Name: "sort"}, {Name: "reverse"}, {Name: "filter"}, {Name: "next match"}, {Name: "match before"},
		{Name: "export table"},
	}
}

// open opens the row or closes it.
func (p *listPage) open() bool { return p.rows.Toggle() }

func (p *listPage) copied() string { return p.rows.RowText() }

// complain is the picture of what went wrong: nothing else stands there, and it is not dismissed.
func complain(t *widget.Theme, w int, what string) []string {
	lines := []string{""}
	for _, l := range widget.WrapText(widget.MarkFail+" "+printable.Short(what, mostShown), w-4) {
		lines = append(lines, t.Put(widget.Bad, "  "+l))
	}
	return lines
}

// elsewhere is the dispatch that a filter of Dispatches asks for by its id and nothing else, in how many
// steps it runs, and the last of them, where it runs in none the one that is shown; false where it asks for
// none.
func (p *listPage) elsewhere() (id trace.DispatchID, steps, at int, asked bool) {
	l, s := &p.rows.Listing, p.at()
	if l.Table == nil || l.Table.Name != "dispatches" {
		return 0, 0, -1, false
	}
	f, err := l.Table.ParseFilter(l.Choice.Typed)
	n, equal := f.Equal(l.Table.Column("id"))
	id = trace.DispatchID(n)
	if err != nil || !equal || float64(id) != n || id < 0 || int(id) >= len(s.trace.Graph.Dispatches) {
		return 0, 0, -1, false
	}
	if steps, at = s.index.Ran(id); steps == 0 {
		at = s.step
	}
	return id, steps, at, true
}

// draw draws the list, or says why it is empty: of a step that has no rows, in these words.
func (p *listPage) draw(t *widget.Theme, w, h int, focused bool, none string) []string {
	l := &p.rows.Listing
	switch {
	case p.rows.Job.Err != nil: // what is there is of something else
		return complain(t, w, "This table could not be made: "+p.rows.Job.Err.Error())
	case l.Table == nil:
		none = "Computing …"
	case l.Choice.Typed != "" && len(l.Table.Rows) > 0:
		none = command.Keyed("No row matches the filter. {back out} clears it")
		switch id, steps, at, asked := p.elsewhere(); {
		case asked && steps > 0:
			s := &p.at().trace.Steps[at]
			none += fmt.Sprintf(command.Keyed(". Dispatch %d runs in %s, last in s%d (%s): {why} explains it there, {scope} "+
				"shows other steps"), id, widget.Plural(steps, "step"), s.Index, s.Phase)
		case asked:
			none += fmt.Sprintf(command.Keyed(". Dispatch %d (%s) runs in no step: {why} says when it would"), id,
				p.at().index.Name(id))
		case p.takes() == inspect.AnySteps || p.takes() == inspect.OneStep:
			none += command.Keyed("; {scope} shows other steps")
		}
		none += "."
	}
	return p.rows.Render(t, w, h, focused, none)
}

// at is what the screen showed when the rows were made.
func (p *listPage) at() snapshot { return madeAt(&p.rows) }

// madeAt is what the screen showed when the rows of a pane were made.
func madeAt(p *widget.TablePane) snapshot {
	s, _ := p.At.(snapshot)
	return s
}
