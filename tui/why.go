package tui

import (
	"cmp"
	"context"
	"fmt"

	"gpuscope/trace"
	"gpuscope/trace/inspect"
	"gpuscope/tui/command"
	"gpuscope/tui/widget"
)

// What w shows: why a dispatch has its grid, or none, and what a value reaches.

// whyOperator explains the first dispatch of an operator that runs in the step that is shown, where none does
// the first of all, and of an operator that has none what its values reach. It is false where there is none
// of these.
func whyOperator(s snapshot, op trace.OpID, of string) (text, bool) {
	first := trace.DispatchID(-1)
	for i := range s.trace.Graph.Dispatches {
		d := &s.trace.Graph.Dispatches[i]
		if d.Op != op {
			continue
		}
		if s.index.Find(s.step, d.ID) >= 0 {
			return whyDispatch(s, d.ID, of), true
		}
		if first < 0 {
			first = d.ID
		}
	}
	if first >= 0 {
		return whyDispatch(s, first, of), true
	}
	values := s.trace.Graph.Ops[op].Outputs
	return whatWakes(s, values...), len(values) > 0
}

// whatWakes lists the operators that changes of values reach.
func whatWakes(s snapshot, ids ...trace.ValueID) text {
	return text{of: func(ctx context.Context) (page, error) {
		p := page{title: "Why " + valueNames(&s.trace.Graph, ids)}
		for _, id := range ids {
			p.lines = append(p.lines, s.index.ReachLines(id)...)
		}
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
		at := func(step int, open bool) *text {
			t := whyAt(x, step, id, of, open)
			return &t
		}
		p := page{title: fmt.Sprintf("Why %s in s%d%s", w.Name, w.Step.Index, of)}
		if p.lines = w.Lines(""); w.Folds() {
			if p.folded = at(step, !open); !open {
				p.lines = w.Lines(command.Keyed("{unfold} opens"))
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
	return text{of: make}
}

// explain shows why what is selected is as it is, or says why there is nothing to explain.
func explain(h host, rows *widget.TablePane, t text, explains bool) {
	switch {
	case explains:
		h.Show(t)
	case rows != nil && rows.Current() < 0:
		h.Remark("why: nothing is selected; there are no rows")
	default:
		h.Remark(cmp.Or(t.none, "why: select a dispatch, an operator or a value"))
	}
}
