package tui

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gpuscope/trace"
	"gpuscope/trace/inspect"
	"gpuscope/trace/table"
)

// resizePage is view 3: which change woke which operator, pass by pass.
type resizePage struct {
	rows   tablePane
	s      snapshot
	loaded loadedFor
	lines  []inspect.ResizeRow // what the rows of the table stand for
	said   []table.Part        // the propagation in one line
}

func newResizePage() *resizePage { return &resizePage{loaded: loadedFor{step: -2}} }

func (p *resizePage) name() string { return "Resize" }

func (p *resizePage) pane() *tablePane { return &p.rows }

func (p *resizePage) load(s snapshot) {
	want := loadedFor{version: s.version, step: s.step}
	if want == p.loaded {
		return
	}
	p.s, p.loaded, p.lines, p.said = s, want, nil, nil
	if s.step < 0 || s.trace == nil {
		p.rows.load(nil)
		return
	}
	t, err := s.index.Resized(context.Background(), s.step)
	if err != nil {
		return
	}
	p.lines, p.said = t.Lines, t.Title[0].Parts
	p.rows.load(t.Table)
}

func (p *resizePage) title(w int) []table.Part {
	if p.said == nil {
		return []table.Part{{Rank: 0, Text: "Resize"}}
	}
	return slices.Concat(p.rows.own(), p.said, p.rows.alike(w))
}

func (p *resizePage) render(t *theme, _ glyphs, w, h int, focused bool) []string {
	empty := "No step was run yet. Press i and type a prompt."
	switch {
	case p.rows.filter != "" && p.rows.table != nil:
		empty = "No row matches the filter. Esc clears it."
	case p.s.step >= 0:
		empty = "Nothing changed in this step: no shape, no SymInt. No operator was planned, no params were written."
	}
	return p.rows.render(t, w, h, focused, empty)
}

func (p *resizePage) move(m motion) { p.rows.move(m) }

func (p *resizePage) filtered() string { return p.rows.filter }

func (p *resizePage) setFilter(s string) { p.rows.setFilter(s) }

// current is what the selected row stands for, nil for none.
func (p *resizePage) current() *inspect.ResizeRow {
	if r := p.rows.current(); r >= 0 && r < len(p.lines) {
		return &p.lines[r]
	}
	return nil
}

// planned is the dispatch of the selected row: the one that got another plan, of a hook its first.
func (p *resizePage) planned() (trace.DispatchID, bool) {
	r := p.current()
	if r == nil || r.Hook == nil || r.Change != nil {
		return 0, false
	}
	changes := r.Hook.Plans
	if r.Plan != nil {
		changes = []trace.PlanChange{*r.Plan}
	}
	for _, c := range changes {
		if c.To != nil {
			return p.s.trace.Plans[*c.To].Dispatch, true
		}
	}
	return 0, false
}

func (p *resizePage) about() string { return p.rows.key }

// detail says in full what the table has room for in part.
func (p *resizePage) detail(w int) []string {
	r := p.current()
	if r == nil {
		return nil
	}
	var lines []string
	add := func(format string, args ...any) {
		lines = append(lines, wrapText(fmt.Sprintf(format, args...), w)...)
	}
	g := &p.s.trace.Graph
	switch {
	case r.Change != nil:
		v := &g.Values[r.Change.Value]
		add("%s: value %d, %s %s, at most %s", v.Name, v.ID, v.Role, v.DType, table.Shape(v.MaxDims))
		reached := p.s.index.Reaches(v.ID)
		add("can wake %s (w lists them)", plural(len(reached), "operator"))
	case r.Hook != nil:
		o := &g.Ops[r.Hook.Op]
		add("%s: op %d, %s", o.Name, o.ID, o.Kind)
		add("woken by %s", p.names(r.Hook.Triggers))
		for i := range p.rows.table.Rows {
			if row := &p.rows.table.Rows[i]; row.Parent == p.rows.current() || r.Plan != nil &&
				i == p.rows.current() {
				add("%s: %s", p.rows.table.Cell(i, 0).Text, p.rows.table.Cell(i, 2).Text)
			}
		}
		if r.Same {
			add("the step before did the same kind of thing")
		}
	default:
		add("dirty before the pass: %s", p.names(r.Pass.Dirty))
		add("%s", plural(len(r.Pass.Hooks), "hook")+" ran")
	}
	return lines
}

func (p *resizePage) names(ids []trace.ValueID) string {
	if len(ids) == 0 {
		return "nothing: the first step plans every operator"
	}
	names := make([]string, len(ids))
	for i, v := range ids {
		names[i] = p.s.trace.Graph.Values[v].Name
	}
	return strings.Join(names, ", ")
}

// why explains the dispatch of the row, or lists what a value reaches.
func (p *resizePage) why() (title string, lines []string) {
	if r := p.current(); r != nil && r.Change != nil {
		g := &p.s.trace.Graph
		v := &g.Values[r.Change.Value]
		lines = append(lines, "A change of "+v.Name+" can wake:")
		for _, o := range p.s.index.Reaches(v.ID) {
			lines = append(lines, fmt.Sprintf("  op %d %s (%s)", o, g.Ops[o].Name, g.Ops[o].Kind))
		}
		return v.Name, lines
	}
	if id, ok := p.planned(); ok {
		return whyDispatch(p.s, id)
	}
	return "", nil
}

// whyDispatch is the way from a dispatch back to the inputs of the graph.
func whyDispatch(s snapshot, id trace.DispatchID) (title string, lines []string) {
	w := s.index.Why(s.step, id)
	if w == nil {
		return "", nil
	}
	return w.Name, w.Lines()
}
