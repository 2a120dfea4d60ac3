package view

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/why"
	"gpuscope/trace/report"
	"gpuscope/tui/command"
	"gpuscope/tui/widget"
)

// The functions below build the texts of the why command.

// WhyOperator explains the operator's first dispatch that runs in the shown step. If none runs, it explains
// the operator's first dispatch. For an operator without dispatches, it lists the operators that may be
// re-planned when its outputs change. It returns false if the operator has neither dispatches nor outputs.
func WhyOperator(s Snapshot, op trace.OpID, of string) (Text, bool) {
	first := trace.DispatchID(-1)
	for i := range s.Trace.Graph.Dispatches {
		d := &s.Trace.Graph.Dispatches[i]
		if d.Op != op {
			continue
		}
		if s.Index.Find(s.Step, d.ID) >= 0 {
			return WhyDispatch(s, d.ID, of), true
		}
		if first < 0 {
			first = d.ID
		}
	}
	if first >= 0 {
		return WhyDispatch(s, first, of), true
	}
	values := s.Trace.Graph.Ops[op].Outputs
	return WhatWakes(s, values...), len(values) > 0
}

// WhatWakes returns a text with the operators that may be re-planned when the values change.
func WhatWakes(s Snapshot, ids ...trace.ValueID) Text {
	return Text{Of: func(ctx context.Context) (Page, error) {
		p := Page{Title: "Why " + ValueNames(&s.Trace.Graph, ids)}
		for _, id := range ids {
			p.Lines = append(p.Lines, report.ReachLines(s.Index, id)...)
		}
		return p, ctx.Err()
	}}
}

// WhyDispatch returns the text that explains the grid of a dispatch: the chain of changes from the graph's
// inputs to the grid. `of` is the end of the title, such as ", first of ×3" for the first of three
// dispatches.
func WhyDispatch(s Snapshot, id trace.DispatchID, of string) Text {
	return WhyAt(s.Index, s.Step, id, of, false)
}

// WhyAt returns the text that explains the grid of a dispatch in a step. If `open` is set, the text shows the
// chains of changes in full.
func WhyAt(x *analyze.Index, step int, id trace.DispatchID, of string, open bool) Text {
	make := func(ctx context.Context) (Page, error) {
		w := why.Of(x, step, id)
		at := func(step int, open bool) *Text {
			t := WhyAt(x, step, id, of, open)
			return &t
		}
		p := Page{Title: fmt.Sprintf("Why %s in s%d%s", w.Name, w.Step.Index, of)}
		if p.Lines = report.WhyLines(w, ""); w.Groups() {
			if p.Folded = at(step, !open); !open {
				p.Lines = report.WhyLines(w, command.Keyed("{unfold} shows all"))
			}
		}
		p.First, p.Last = "the run has no earlier change of this grid", "the run has no later change of this grid"
		if next := report.NextChange(x, step, id); next != "" {
			p.Last += "; next change in the plan: " + next
		}
		earlier, later := w.Around()
		if earlier >= 0 {
			p.Earlier = at(earlier, open)
		}
		if later >= 0 {
			p.Later = at(later, open)
		}
		return p, ctx.Err()
	}
	return Text{Of: make}
}

// Explain shows the text t if `explains` is true, and otherwise tells the user why there is no text.
func Explain(h Host, rows *widget.TablePane, t Text, explains bool) {
	switch {
	case explains:
		h.Show(t)
	case rows != nil && rows.Current() < 0:
		h.Remark("why: this table has no rows")
	default:
		h.Remark(cmp.Or(t.None, "why: select a dispatch, an operator or a value"))
	}
}

// FirstOf returns the end of a title above a text that describes only the first of n things. It returns "" if
// n is 1.
func FirstOf(n int) string {
	if n < 2 {
		return ""
	}
	return fmt.Sprintf(", first of ×%d", n)
}

// ValueNames returns the names of values, separated by commas.
func ValueNames(g *trace.Graph, ids []trace.ValueID) string {
	if len(ids) == 0 {
		return "none (the first step plans every operator)"
	}
	names := make([]string, len(ids))
	for i, v := range ids {
		names[i] = g.Values[v].Name
	}
	return strings.Join(names, ", ")
}
