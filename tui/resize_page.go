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
type resizePage struct{ listPage }

func newResizePage(*App) view { return &resizePage{listOf("resize")} }

func (p *resizePage) load(j *jobs, s snapshot, _ int) { p.want(j, s, 0) }

func (p *resizePage) title(w int) []table.Part {
	t := p.rows.table
	if t == nil || len(t.Title) == 0 {
		return []table.Part{{Rank: 0, Text: "Resize"}}
	}
	parts := slices.Concat(p.rows.own(w), t.Title[0].Parts)
	if s := &p.rows.at; s.stands(p).Text != "" { // the other steps of the scope that are worth a look
		parts = append(parts, table.Say(0, "%s", s.index.Regrids(s.scope)))
	}
	return append(parts, p.rows.alike(w)...)
}

func (p *resizePage) render(t *theme, _ glyphs, w, h int, focused bool) []string {
	return p.draw(t, w, h, focused,
		"Nothing changed in this step: no shape, no SymInt. No operator was planned, no params were written.")
}

// current is what the selected row stands for, nil for none.
func (p *resizePage) current() *inspect.ResizeRow {
	if p.rows.table == nil {
		return nil
	}
	t, _ := p.rows.table.From.(*inspect.ResizeTable)
	if r := p.rows.current(); t != nil && r >= 0 {
		return &t.Lines[r]
	}
	return nil
}

// planned is the dispatch of a row: the one that got another plan, of a hook its first.
func planned(t *trace.Trace, r *inspect.ResizeRow) (trace.DispatchID, bool) {
	if r.Hook == nil || r.Change != nil {
		return 0, false
	}
	changes := r.Hook.Plans
	if r.Plan != nil {
		changes = []trace.PlanChange{*r.Plan}
	}
	for _, c := range changes {
		if c.To != nil {
			return t.Plans[*c.To].Dispatch, true
		}
	}
	return 0, false
}

// detail says in full what the table has room for in part.
func (p *resizePage) detail() detail {
	r, l := p.current(), p.rows.listing
	if r == nil {
		return detail{}
	}
	at := p.rows.current()
	return detail{p.rows.key, l.table.Cell(at, 0).Text, func(ctx context.Context) ([]string, error) {
		return resizeDetail(l, at, r), ctx.Err()
	}}
}

func resizeDetail(l listing, at int, r *inspect.ResizeRow) []string {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	g := &l.at.trace.Graph
	switch {
	case r.Change != nil:
		v := &g.Values[r.Change.Value]
		add("%s: value %d, %s %s, at most %s", v.Name, v.ID, v.Role, v.DType, table.Shape(v.MaxDims))
		reached := l.at.index.Reaches(v.ID)
		add(keyed("can wake %s ({why} lists them)"), plural(len(reached), "operator"))
	case r.Hook != nil:
		o := &g.Ops[r.Hook.Op]
		add("%s: op %d, %s", o.Name, o.ID, o.Kind)
		add("woken by %s", valueNames(g, r.Hook.Triggers))
		if len(r.Hooks) > 1 {
			add("the same in %s", plural(len(r.Hooks), "layer"))
			at++ // the first of them
		}
		for i := range l.table.Rows {
			if l.table.Rows[i].Parent == at || r.Plan != nil && i == at {
				add("%s: %s", l.table.Cell(i, 0).Text, l.table.Cell(i, 2).Text)
			}
		}
		if r.Same {
			add("the step before did the same kind of thing")
		}
	default:
		add("dirty before the pass: %s", valueNames(g, r.Pass.Dirty))
		add("%s", plural(len(r.Pass.Hooks), "hook")+" ran")
	}
	return lines
}

func valueNames(g *trace.Graph, ids []trace.ValueID) string {
	if len(ids) == 0 {
		return "nothing: the first step plans every operator"
	}
	names := make([]string, len(ids))
	for i, v := range ids {
		names[i] = g.Values[v].Name
	}
	return strings.Join(names, ", ")
}

// why explains the dispatch of the row, or lists what a value reaches.
func (p *resizePage) why() (text, bool) {
	r, s := p.current(), p.rows.at
	if r == nil {
		return text{}, false
	}
	if r.Change != nil {
		return whatWakes(s, r.Change.Value), true
	}
	id, ok := planned(s.trace, r)
	return whyDispatch(s, id, ""), ok
}

// whatWakes lists the operators that a change of a value reaches.
func whatWakes(s snapshot, id trace.ValueID) text {
	return text{of: func(ctx context.Context) (page, error) {
		p := page{title: "Why " + s.trace.Graph.Values[id].Name, lines: s.index.ReachLines(id)}
		return p, ctx.Err()
	}}
}

// whyDispatch is the way from a dispatch back to the inputs of the graph. Of several that a row stands for it
// says so.
func whyDispatch(s snapshot, id trace.DispatchID, of string) text {
	return whyAt(s.index, s.step, id, of, false)
}

// whyAt explains a dispatch in a step, with its chains open or closed.
func whyAt(x *inspect.Index, step int, id trace.DispatchID, of string, open bool) text {
	make := func(ctx context.Context) (page, error) {
		w := x.Why(step, id)
		if w == nil {
			return page{}, ctx.Err()
		}
		at := func(step int, open bool) *text {
			t := whyAt(x, step, id, of, open)
			return &t
		}
		p := page{title: fmt.Sprintf("Why %s in s%d%s", w.Name, w.Step.Index, of)}
		if p.lines = w.Lines(""); w.Folds() {
			if p.folded = at(step, !open); !open {
				p.lines = w.Lines(keyed("{unfold} opens"))
			}
		}
		p.first, p.last = "the run has no earlier change of this grid", "the run has no later change of this grid"
		if next := x.NextChange(step, id); next != "" {
			p.last += "; by the plan: " + next
		}
		earlier, later := w.Around()
		if earlier >= 0 {
			p.earlier = at(earlier, open)
		}
		if later >= 0 {
			p.later = at(later, open)
		}
		return p, ctx.Err()
	}
	return text{of: make, none: "why: the dispatch did not run"}
}
