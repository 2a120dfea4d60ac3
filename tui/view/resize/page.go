// Package resize is the view Resize: the operators that were re-planned, pass by pass.
package resize

import (
	"context"
	"fmt"
	"slices"

	"gpuscope/internal/printable"
	"gpuscope/trace/analyze"
	"gpuscope/trace/report"
	"gpuscope/trace/table"
	"gpuscope/tui/command"
	"gpuscope/tui/view"
	"gpuscope/tui/widget"
)

// Page is view 3. It shows which change re-planned which operator, pass by pass.
type Page struct {
	view.ListPage
	host view.Host
}

// New returns the view Resize.
func New(h view.Host) *Page { return &Page{view.ListOf("resize"), h} }

func (p *Page) Actions() []command.Action {
	return append(p.ListPage.Actions(), command.Action{Name: "why", Run: func() {
		t, explains := p.why()
		view.Explain(p.host, &p.Rows, t, explains)
	}})
}

func (p *Page) Detailed() bool { return true }

func (p *Page) Load(j *widget.Jobs, s view.Snapshot, _ int) { p.Want(j, s, 0) }

func (p *Page) Title(w int) []table.Segment {
	t := p.Rows.Table
	if t == nil || len(t.Title) == 0 {
		return []table.Segment{{Rank: 0, Text: "Resize"}}
	}
	parts := slices.Concat(p.Rows.Own(w), t.Title[0].Segments)
	if s := p.Snapshot(); s.Stands(p).Text != "" { // of several selected steps, name those with changed grids
		parts = append(parts, table.Say(0, "%s", s.Index.Regrids(s.Scope)))
	}
	return append(parts, p.Rows.Alike(w)...)
}

func (p *Page) Render(t *widget.Theme, _ widget.Glyphs, w, h int, focused bool) []string {
	none := "No shape and no SymInt changed in this step, so no operator was re-planned and no params were written."
	if x := p.Snapshot().Index; x != nil && x.Trace.Engine != "" {
		none = "The profile of " + printable.Clean(x.Trace.Engine) + " contains only times."
	}
	return p.Draw(t, w, h, focused, none)
}

// Has returns a function that accepts the events of steps in which a grid changed.
func (p *Page) Has() func(analyze.Event) bool {
	return func(e analyze.Event) bool {
		x := p.Snapshot().Index
		return x != nil && x.Regridded(e.Step)
	}
}

// current returns the entry of the selected row, or nil if there is none.
func (p *Page) current() *analyze.ResizeRow {
	if p.Rows.Table == nil {
		return nil
	}
	t, _ := p.Rows.Table.From.(*report.ResizeTable)
	if r := p.Rows.Current(); t != nil && r >= 0 {
		return &t.Lines[r]
	}
	return nil
}

// Detail shows the cells of the row in full.
func (p *Page) Detail() *view.Detail {
	r, l, s := p.current(), p.Rows.Listing, p.Snapshot()
	if r == nil {
		return &view.Detail{}
	}
	at := p.Rows.Current()
	return &view.Detail{
		Of: p.Rows.Key, Title: l.Table.Cell(at, 0).Text,
		Lines: func(ctx context.Context) ([]string, error) {
			return resizeDetail(l, s.Index, at, r), ctx.Err()
		},
	}
}

func resizeDetail(l widget.Listing, x *analyze.Index, at int, r *analyze.ResizeRow) []string {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	g := &x.Trace.Graph
	switch {
	case r.Change != nil:
		v := &g.Values[r.Change.Value]
		add("%s: value %d, %s %s, at most %s", v.Name, v.ID, v.Role, v.DType, report.Bounds(x, v))
		reached := x.Reaches(v.ID)
		add(command.Keyed("a change of this value can re-plan %s ({why} lists them)"), widget.Plural(len(reached), "operator"))
	case r.Hook != nil:
		o := &g.Ops[r.Hook.Op]
		add("%s: op %d, %s", o.Name, o.ID, o.Kind)
		add("re-planned because these values changed: %s", view.ValueNames(g, r.Hook.Triggers))
		if len(r.Hooks) > 1 {
			add("re-planned in the same way in %s", widget.Plural(len(r.Hooks), "layer"))
			at++ // the next row is the group's first operator
		}
		for i := range l.Table.Rows {
			if l.Table.Rows[i].Parent == at || r.Plan != nil && i == at {
				add("%s: %s", l.Table.Cell(i, 0).Text, l.Table.Cell(i, 2).Text)
			}
		}
		if r.Same {
			add("the previous step was re-planned in the same way")
		}
	default:
		add("values that changed before the pass: %s", view.ValueNames(g, r.Pass.Dirty))
		add("%s", widget.Plural(len(r.Pass.Hooks), "operator")+" re-planned")
	}
	return lines
}

// why returns the text that explains the grid of the row's dispatch. For a row without a dispatch, the text
// lists the operators that depend on the changed values of the row or of its pass.
func (p *Page) why() (view.Text, bool) {
	r, s := p.current(), p.Snapshot()
	if r == nil {
		return view.Text{}, false
	}
	if id, ok := r.Dispatch(s.Trace); ok {
		return view.WhyDispatch(s, id, view.FirstOf(len(r.Hooks))), true
	}
	values := r.Values()
	return view.WhatWakes(s, values...), len(values) > 0
}
