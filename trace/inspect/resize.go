package inspect

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gpuscope/trace"
	"gpuscope/trace/table"
)

// eachPlanChange calls f for every change of a plan in a step's propagation, in order.
func eachPlanChange(s *trace.Step, f func(*trace.Hook, trace.PlanChange)) {
	for i := range s.Resize.Passes {
		for j := range s.Resize.Passes[i].Hooks {
			h := &s.Resize.Passes[i].Hooks[j]
			for _, c := range h.Plans {
				if c.From != nil || c.To != nil {
					f(h, c)
				}
			}
		}
	}
}

// planOf is a plan by an id that may be absent.
func planOf(t *trace.Trace, id *trace.PlanID) *trace.Plan {
	if id == nil {
		return nil
	}
	return &t.Plans[*id]
}

// changed is the dispatch whose plan a change is about; one side of it is there.
func changed(t *trace.Trace, c trace.PlanChange) trace.DispatchID {
	if p := planOf(t, c.To); p != nil {
		return p.Dispatch
	}
	return planOf(t, c.From).Dispatch
}

// ResizeSummary is what a step's propagation did, in numbers.
type ResizeSummary struct {
	Order                            string
	Time                             trace.Time
	Passes, Hooks                    int
	Operators                        int // that were planned, each once
	Values                           int // changes of values
	Noops, Glitches, Deferred        int // hooks
	Grids, Routes, Params, New, Gone int // dispatches, however many passes planned them
	// SameAs is the index of the step before where its propagation did the same: the same operators, the same
	// kinds of changes. Else -1.
	SameAs int
}

// Resize computes the summary of a step's propagation.
func (x *Index) Resize(step int) *ResizeSummary { return x.summed(context.Background(), step) }

func (x *Index) summed(ctx context.Context, step int) *ResizeSummary {
	t := x.Trace
	s := &t.Steps[step]
	r := &ResizeSummary{Order: s.Resize.Order, Time: s.Resize.NS, Passes: len(s.Resize.Passes), SameAs: -1}
	ops := map[trace.OpID]bool{}
	for i := range s.Resize.Passes {
		for _, h := range s.Resize.Passes[i].Hooks {
			ops[h.Op] = true
			r.Hooks++
			r.Values += len(h.Changed)
			for _, c := range []struct {
				on bool
				n  *int
			}{{h.Noop, &r.Noops}, {h.Glitch, &r.Glitches}, {h.Deferred, &r.Deferred}} {
				if c.on {
					*c.n++
				}
			}
		}
	}
	r.Operators = len(ops)
	for _, n := range netPlans(t, s) {
		for _, c := range []struct {
			on bool
			n  *int
		}{
			{n.diff.Grid, &r.Grids},
			{n.diff.Route, &r.Routes},
			{n.diff.Params, &r.Params},
			{n.diff.New, &r.New},
			{n.diff.Gone, &r.Gone},
		} {
			if c.on {
				*c.n++
			}
		}
	}
	if step > 0 && r.Hooks > 0 && slices.Equal(hookShapes(ctx, t, step), hookShapes(ctx, t, step-1)) {
		r.SameAs = t.Steps[step-1].Index
	}
	return r
}

// hookShapes says of every hook of a step which operator it planned and what kinds of things changed, but no
// numbers.
func hookShapes(ctx context.Context, t *trace.Trace, step int) []string {
	var shapes []string
	for i := range t.Steps[step].Resize.Passes {
		for j := range t.Steps[step].Resize.Passes[i].Hooks {
			if j%1024 == 0 && ctx.Err() != nil {
				return nil // who asked looks at it too
			}
			h := &t.Steps[step].Resize.Passes[i].Hooks[j]
			shapes = append(shapes, fmt.Sprint(i, " ", hookShape(t, h)))
		}
	}
	return shapes
}

func hookShape(t *trace.Trace, h *trace.Hook) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %v %v %v", h.Op, h.Noop, h.Glitch, h.Deferred)
	for _, c := range h.Changed {
		fmt.Fprintf(&b, " v%d", c.Value)
	}
	for _, c := range h.Plans {
		if c.From != nil || c.To != nil {
			fmt.Fprintf(&b, " %d%v", changed(t, c), DiffPlans(planOf(t, c.From), planOf(t, c.To)))
		}
	}
	return b.String()
}

// Line is the summary in one line: "50 operators replanned, 0 grids, 50 params, as s16".
func (r *ResizeSummary) Line() string {
	if r.Hooks == 0 {
		return "nothing changed: no operator was planned"
	}
	parts := []string{table.Plural(r.Operators, "operator") + " replanned"}
	if r.Hooks > r.Operators {
		parts[0] = fmt.Sprintf("%s replanned in %s", table.Plural(r.Operators, "operator"),
			table.Plural(r.Hooks, "hook run"))
	}
	parts = append(parts, table.Plural(r.Grids, "grid"))
	for _, c := range []struct {
		n      int
		what   string
		always bool
	}{
		{n: r.Routes, what: "routes"},
		{n: r.New, what: "dispatches new"},
		{n: r.Gone, what: "dispatches gone"},
		{r.Params, "params", true},
		{n: r.Noops, what: "no-op"},
		{n: r.Glitches, what: "glitch"},
		{n: r.Deferred, what: "deferred"},
	} {
		if c.n > 0 || c.always {
			parts = append(parts, fmt.Sprintf("%d %s", c.n, c.what))
		}
	}
	if ns, ok := r.Time.NS(); ok {
		parts = append(parts, fmt.Sprintf("%.1f µs", float64(ns)/1e3))
	}
	if r.SameAs >= 0 {
		parts = append(parts, fmt.Sprintf("as s%d", r.SameAs))
	}
	return strings.Join(parts, ", ")
}

// ResizeRow is a line of a step's propagation: a pass, a hook in it, or what a hook changed: a value or a
// plan.
type ResizeRow struct {
	table.Row
	Pass *trace.Pass
	Hook *trace.Hook
	// Same says that the hook of the same operator in the step before changed the same kinds of things.
	Same   bool
	Change *trace.Change     // a value's
	Plan   *trace.PlanChange // a dispatch's
}

// ResizeRows computes the rows of a step's propagation: passes, hooks, changes. A pass is open where some of
// its hooks did other things than in the step before.
func (x *Index) ResizeRows(ctx context.Context, step int) []ResizeRow {
	t := x.Trace
	before := map[string]bool{}
	if step > 0 {
		for _, shape := range hookShapes(ctx, t, step-1) {
			before[shape] = true
		}
	}
	var rows []ResizeRow
	passes := t.Steps[step].Resize.Passes
	for i := range passes {
		p := &passes[i]
		pass := len(rows)
		rows = append(rows,
			ResizeRow{
				Row: table.Row{Key: fmt.Sprintf("pass%d", i), Parent: -1, Group: true}, Pass: p, Same: true,
			})
		for j := range p.Hooks {
			if j%1024 == 0 && ctx.Err() != nil {
				return nil
			}
			h := &p.Hooks[j]
			hook := len(rows)
			key := fmt.Sprintf("pass%d/op%d", i, h.Op)
			same := before[fmt.Sprint(i, " ", hookShape(t, h))]
			rows = append(rows,
				ResizeRow{Row: table.Row{Key: key, Parent: pass, Depth: 1}, Pass: p, Hook: h, Same: same})
			rows[pass].Same = rows[pass].Same && same
			for k := range h.Changed {
				key := fmt.Sprintf("%s/v%d", key, h.Changed[k].Value)
				rows = append(rows, ResizeRow{
					Row:  table.Row{Key: key, Parent: hook, Depth: 2},
					Pass: p, Hook: h, Same: same, Change: &h.Changed[k],
				})
			}
			for k := range h.Plans {
				if c := &h.Plans[k]; c.From != nil || c.To != nil {
					key := fmt.Sprintf("%s/d%d", key, changed(t, *c))
					rows = append(rows, ResizeRow{
						Row:  table.Row{Key: key, Parent: hook, Depth: 2},
						Pass: p, Hook: h, Same: same, Plan: c,
					})
				}
			}
		}
		rows[pass].Open = !rows[pass].Same
	}
	return rows
}

func init() {
	register(Table{
		Name: "resize", Takes: OneStep,
		Doc: "which change woke which operator before a step, pass by pass",
		Of: func(ctx context.Context, x *Index, o Options) (*table.Table, error) {
			t, err := x.Resized(ctx, o.Scope.last())
			if err != nil {
				return nil, err
			}
			return t.Table, nil
		},
	})
}

// ResizeTable is a step's propagation as a table, with what each of its rows stands for.
type ResizeTable struct {
	*table.Table
	Lines []ResizeRow
}

// Resized is the table of a step's propagation.
func (x *Index) Resized(ctx context.Context, step int) (*ResizeTable, error) {
	rows, summary := x.ResizeRows(ctx, step), x.summed(ctx, step)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	at := table.By(rows)
	places := make([]table.Row, len(rows))
	for i := range places {
		places[i] = rows[i].Row
	}
	t := table.New("resize", []table.Column{
		{
			Name: "what", Title: "hook", Width: 80, Tree: true,
			Doc: "pass, operator, value or dispatch",
			Of:  at(func(r *ResizeRow) table.Cell { return table.Text(x.resizeLabel(r)) }),
		},
		{
			Name: "triggers", Title: "triggers", Width: 80,
			Doc: "what woke it; of a pass, what was dirty",
			Of: at(func(r *ResizeRow) table.Cell {
				switch {
				case r.Change != nil || r.Plan != nil:
					return table.Cell{}
				case r.Hook != nil:
					return table.Text(x.names(r.Hook.Triggers))
				}
				return table.Text(x.names(r.Pass.Dirty))
			}),
		},
		{
			Name: "change", Title: "change", Width: 80,
			Doc: "values from → to; dispatches: + new, - gone, g grid, r route, p params",
			Of:  at(func(r *ResizeRow) table.Cell { return table.Text(x.resizeChange(r)) }),
		},
		{
			Name: "outcome", Title: "", Width: 80,
			Doc: "no-op: nothing changed; glitch: saw operands of two moments; deferred: refused, tried again later",
			Of: at(func(r *ResizeRow) table.Cell {
				if r.Hook == nil || r.Depth != 1 {
					return table.Cell{}
				}
				return table.Text(outcome(r.Hook))
			}),
		},
		{
			Name: "us", Title: "µs", Unit: "us", Is: table.Measured, Right: true, Width: 80,
			Doc: "on the CPU",
			Of: at(func(r *ResizeRow) table.Cell {
				if r.Hook == nil || r.Depth != 1 {
					return table.Cell{}
				}
				ns, ok := r.Hook.NS.NS()
				if !ok {
					return table.Missing()
				}
				return table.Number(float64(ns)/1e3, 2)
			}),
		},
	}, places)
	s := &x.Trace.Steps[step]
	order := ""
	if s.Resize.Order != "" {
		order = s.Resize.Order + ": "
	}
	t.Title = []table.Line{table.Title(
		table.Part{Rank: 2, Text: fmt.Sprintf("s%d %s at position %d", s.Index, s.Phase, s.Position)},
		table.Part{Rank: 0, Text: order + summary.Line()})}
	made := &ResizeTable{t, rows}
	t.From = made
	return made, nil
}

func outcome(h *trace.Hook) string {
	var parts []string
	for _, c := range []struct {
		on   bool
		what string
	}{{h.Noop, "no-op"}, {h.Glitch, "glitch"}, {h.Deferred, "deferred"}} {
		if c.on {
			parts = append(parts, c.what)
		}
	}
	return strings.Join(parts, ", ")
}

func (x *Index) resizeLabel(r *ResizeRow) string {
	switch {
	case r.Change != nil:
		return x.Trace.Graph.Values[r.Change.Value].Name
	case r.Plan != nil:
		return x.Name(changed(x.Trace, *r.Plan))
	case r.Hook != nil:
		return x.Trace.Graph.Ops[r.Hook.Op].Name
	}
	return fmt.Sprintf("pass %d: %s", r.Pass.Index, table.Plural(len(r.Pass.Hooks), "hook"))
}

// names lists values by name; of many the first three.
func (x *Index) names(ids []trace.ValueID) string {
	var out []string
	for i, v := range ids {
		if i == 3 && len(ids) > 4 {
			return fmt.Sprintf("%s, … %d", strings.Join(out, ", "), len(ids))
		}
		out = append(out, x.Trace.Graph.Values[v].Name)
	}
	return strings.Join(out, ", ")
}

func (x *Index) resizeChange(r *ResizeRow) string {
	switch {
	case r.Change != nil:
		return valueChange(r.Change)
	case r.Plan != nil:
		return x.planChange(*r.Plan)
	case r.Hook == nil:
		return ""
	}
	var diff PlanDiff
	for _, c := range r.Hook.Plans {
		diff = diff.or(DiffPlans(planOf(x.Trace, c.From), planOf(x.Trace, c.To)))
	}
	var parts []string
	for i := range r.Hook.Changed {
		parts = append(parts, valueChange(&r.Hook.Changed[i]))
	}
	if diff.Any() {
		parts = append(parts, diff.String())
	}
	return strings.Join(parts, " · ")
}

// valueChange is "1×42 → 1×1", or "57 → 58" of a SymInt.
func valueChange(c *trace.Change) string { return table.Shape(c.From) + " → " + table.Shape(c.To) }

// planChange says what another plan changes: grid, kernel, params.
func (x *Index) planChange(c trace.PlanChange) string {
	from, to := planOf(x.Trace, c.From), planOf(x.Trace, c.To)
	d := DiffPlans(from, to)
	switch {
	case d.Gone:
		return "runs no more"
	case d.New:
		return strings.TrimSpace(fmt.Sprintf("runs: %s, grid %s %s", to.Kernel, table.Grid(to.Workgroups),
			to.Reason))
	}
	var parts []string
	if d.Grid {
		parts = append(parts,
			fmt.Sprintf("grid %s → %s", table.Grid(from.Workgroups), table.Grid(to.Workgroups)))
	}
	if d.Route {
		parts = append(parts, fmt.Sprintf("%s → %s (%s)", from.Kernel, to.Kernel, to.Reason))
	}
	if params := paramsText(x.Params(to, from), true); params != "" {
		parts = append(parts, params)
	}
	return strings.Join(parts, ", ")
}
