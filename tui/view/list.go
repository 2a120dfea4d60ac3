package view

import (
	"context"
	"fmt"

	"gpuscope/internal/printable"
	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/report"
	"gpuscope/trace/table"
	"gpuscope/tui/command"
	"gpuscope/tui/widget"
)

// ListPage is the common part of the views that show one table of package report.
type ListPage struct {
	Basics
	Rows widget.TablePane
	From report.Table
}

// ListOf returns the page of a table. It panics if no table has the name, which would be a bug.
func ListOf(name string) ListPage {
	t, err := report.TableNamed(name)
	if err != nil {
		panic(err)
	}
	return ListPage{From: t}
}

func (p *ListPage) Takes() report.Takes { return p.From.Takes }

// ListKey identifies the contents of a table. The snapshot's version also increases with every change of the
// selection or the baseline.
type ListKey struct {
	Version int
	Fold    analyze.Grouping
}

// Want requests the table of the selected steps.
func (p *ListPage) Want(j *widget.Jobs, s Snapshot, fold analyze.Grouping) {
	if s.Step < 0 || s.Trace == nil {
		p.Rows.Unload(j)
		return
	}
	o := s.Options(p.From.Takes, fold)
	p.Rows.Form = s.FormOf(p.From.Takes, fold)
	p.Rows.Load(j, ListKey{s.Version, fold}, s, s.Running,
		func(ctx context.Context) (*table.Table, error) { return p.From.Of(ctx, s.Index, o) })
}

func (p *ListPage) Pane() *widget.TablePane { return &p.Rows }

func (p *ListPage) Move(m widget.Motion) { p.Rows.Move(m) }

func (p *ListPage) Filter() *Filter { return &Filter{Text: p.Rows.Wanted.Typed, Set: p.Rows.SetFilter} }

// Actions returns the commands that work on any list of rows. App implements these commands.
func (p *ListPage) Actions() []command.Action {
	return []command.Action{
		{Name: "open"},
		{Name: "sort"},
		{Name: "reverse"},
		{Name: "filter"},
		{Name: "next match"},
		{Name: "previous match"},
		{Name: "export table"},
	}
}

// Open unfolds the selected row, or folds it if it is unfolded.
func (p *ListPage) Open() bool { return p.Rows.Toggle() }

func (p *ListPage) Copied() string { return p.Rows.RowText() }

// Complain returns the lines that show an error in place of a view. The error cannot be dismissed.
func Complain(t *widget.Theme, w int, what string) []string {
	lines := []string{""}
	for _, l := range widget.WrapText(widget.MarkFail+" "+printable.Short(what, MostShown), w-4) {
		lines = append(lines, t.Put(widget.Bad, "  "+l))
	}
	return lines
}

// Elsewhere finds the steps that ran a dispatch, if the filter of a dispatch table is a dispatch id. It
// returns this id, the number of steps that ran the dispatch, and the index of the last such step. If no step
// ran the dispatch, `at` is the index of the shown step. For any other filter or table, `asked` is false.
func (p *ListPage) Elsewhere() (id trace.DispatchID, steps, at int, asked bool) {
	l, s := &p.Rows.Listing, p.Snapshot()
	if l.Table == nil || l.Table.Name != "dispatches" {
		return 0, 0, -1, false
	}
	f, err := l.Table.ParseFilter(context.Background(), l.Choice.Typed)
	n, equal := f.Equal(l.Table.Column("id"))
	id = trace.DispatchID(n)
	if err != nil || !equal || float64(id) != n || id < 0 || int(id) >= len(s.Trace.Graph.Dispatches) {
		return 0, 0, -1, false
	}
	if steps, at = s.Index.Ran(id); steps == 0 {
		at = s.Step
	}
	return id, steps, at, true
}

// Draw draws the list. If the list has no rows, Draw instead draws a text that says why. This text is `none`,
// unless the table is still being computed or a filter hides all rows.
func (p *ListPage) Draw(t *widget.Theme, w, h int, focused bool, none string) []string {
	l := &p.Rows.Listing
	switch {
	case p.Rows.Job.Err != nil: // do not show the rows of other steps
		return Complain(t, w, "Could not compute this table: "+p.Rows.Job.Err.Error())
	case l.Table == nil:
		none = "Computing …"
	case l.Choice.Typed != "" && len(l.Table.Rows) > 0:
		none = command.Keyed("No row matches the filter. Press {back out} to clear the filter")
		switch id, steps, at, asked := p.Elsewhere(); {
		case asked && steps > 0:
			s := &p.Snapshot().Trace.Steps[at]
			const runs = ". Dispatch %d runs in %s, last in s%d (%s). Press {why} for an explanation, or " +
				"{selection} for other steps"
			none += fmt.Sprintf(command.Keyed(runs), id, widget.Plural(steps, "step"), s.Index, s.Phase)
		case asked:
			none += fmt.Sprintf(command.Keyed(". Dispatch %d (%s) runs in no step. Press {why} to see when it would run"),
				id,
				p.Snapshot().Index.Name(id))
		case p.Takes() == report.AnySteps || p.Takes() == report.OneStep:
			none += command.Keyed(", or {selection} to show other steps")
		}
		none += "."
	}
	return p.Rows.Render(t, w, h, focused, none)
}

// Snapshot returns the snapshot from which the rows were computed.
func (p *ListPage) Snapshot() Snapshot { return MadeAt(&p.Rows) }

// MadeAt returns the snapshot from which the rows of a pane were computed.
func MadeAt(p *widget.TablePane) Snapshot {
	s, _ := p.At.(Snapshot)
	return s
}
