package report

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/table"
	"gpuscope/trace/tree"
)

// ResizeRows returns the rows of a step's shape propagation: passes, hooks (calls that re-plan an operator)
// and changes. A pass is unfolded if it is the only one, or if one of its hooks changed a grid or a route. It
// is also unfolded if one of its hooks made other changes than in the previous step.
func ResizeRows(ctx context.Context, x *analyze.Index, step int) []analyze.ResizeRow {
	t := x.Trace
	before := map[string]bool{}
	if step > 0 {
		for _, shape := range analyze.HookShapes(ctx, t, step-1) {
			before[shape] = true
		}
	}
	var rows []analyze.ResizeRow
	passes := t.Steps[step].Resize.Passes
	for i := range passes {
		p := &passes[i]
		pass := len(rows)
		key := fmt.Sprintf("pass%d", i)
		rows = append(rows, analyze.ResizeRow{
			Row: tree.Row{Key: key, Parent: -1, Group: true, Open: len(passes) == 1}, Pass: p, Same: true,
		})
		for j, hooks := range equalHooks(x, p) {
			if j%256 == 0 && ctx.Err() != nil {
				return nil
			}
			parent := pass
			if len(hooks) > 1 {
				parent = len(rows)
				rows = append(rows, analyze.ResizeRow{
					Row:  tree.Row{Key: fmt.Sprintf("%s/op%d×", key, hooks[0].Op), Parent: pass, Depth: 1},
					Pass: p, Hook: hooks[0], Hooks: hooks, Same: true,
				})
			}
			for _, h := range hooks {
				same := before[fmt.Sprint(i, " ", analyze.HookShape(t, h))]
				rows = hookRows(x, rows, parent, key, analyze.ResizeRow{
					Pass: p, Hook: h, Same: same, Grouped: len(hooks) > 1,
				})
				rows[parent].Same = rows[parent].Same && same
				rows[pass].Same = rows[pass].Same && same
				changed := len(h.Changed) > 0 || len(h.Plans) > 0
				rows[pass].Open = rows[pass].Open || changed && !same || analyze.Resizes(t, h)
			}
		}
	}
	return rows
}

// hookRows adds the row of a hook under a parent row, and under it the rows of the hook's changes.
func hookRows(x *analyze.Index, rows []analyze.ResizeRow, parent int, key string,
	of analyze.ResizeRow,
) []analyze.ResizeRow {
	h, hook := of.Hook, len(rows)
	of.Hooks = []*trace.Hook{h}
	of.Row = tree.Row{Key: fmt.Sprintf("%s/op%d", key, h.Op), Parent: parent, Depth: rows[parent].Depth + 1}
	rows = append(rows, of)
	add := func(r analyze.ResizeRow, kind string, id int) {
		r.Row = tree.Row{Key: fmt.Sprintf("%s/%s%d", of.Key, kind, id), Parent: hook, Depth: of.Depth + 1}
		rows = append(rows, r)
	}
	for k := range h.Changed {
		r := of
		r.Change = &h.Changed[k]
		add(r, "v", int(r.Change.Value))
	}
	for k := range h.Plans {
		if c := &h.Plans[k]; c.From != nil || c.To != nil {
			r := of
			r.Plan = c
			add(r, "d", int(analyze.Changed(x.Trace, *c)))
		}
	}
	return rows
}

// equalHooks divides the hooks of a pass into groups. Hooks of equal layers that made the same changes form a
// group. Groups are in the order of their first hooks.
func equalHooks(x *analyze.Index, p *trace.Pass) [][]*trace.Hook {
	var list [][]*trace.Hook
	at := map[string]int{}
	for i := range p.Hooks {
		h := &p.Hooks[i]
		o := &x.Trace.Graph.Ops[h.Op]
		if o.Layer == nil {
			list = append(list, []*trace.Hook{h})
			continue
		}
		did := strings.Join([]string{o.Place(), o.Kind, outcome(h), hookChange(x, h)}, "\x00")
		for _, c := range h.Plans {
			if c.From != nil || c.To != nil {
				did += "\x00" + planChange(x, c)
			}
		}
		k, seen := at[did]
		if !seen {
			k = len(list)
			at[did], list = k, append(list, nil)
		}
		list[k] = append(list[k], h)
	}
	return list
}

func init() {
	Register(Table{
		Name: "resize", Takes: OneStep,
		Doc: "operators that were re-planned before a step, in each pass over the graph, and the changes that caused the re-planning",
		Of: func(ctx context.Context, x *analyze.Index, o analyze.Options) (*table.Table, error) {
			t, err := Resized(ctx, x, o.Selection.Last())
			if err != nil {
				return nil, err
			}
			return t.Table, nil
		},
	})
}

// usualOrder is the default order of propagation.
const usualOrder = "topological"

// ResizeTable is a step's propagation as a table. Lines holds the data of each row.
type ResizeTable struct {
	*table.Table
	Lines []analyze.ResizeRow
}

// Resized returns the table of a step's propagation.
func Resized(ctx context.Context, x *analyze.Index, step int) (*ResizeTable, error) {
	rows, summary := ResizeRows(ctx, x, step), x.Summed(ctx, step)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	of := table.ColumnsOf(rows)
	t := table.New("resize", []table.Column{
		of.Text(80, "what", "operator", "pass, operator, value or dispatch",
			func(r *analyze.ResizeRow) string { return resizeLabel(x, r) }).AsTree(),
		of.Words(80, "triggers", "triggers",
			"values whose change caused the re-planning of the operator; for a pass: values whose changes the pass propagates",
			func(r *analyze.ResizeRow) table.Cell {
				switch {
				case r.Change != nil || r.Plan != nil:
					return table.Cell{}
				case r.Hook != nil:
					return table.Text(triggers(x, r.Hooks))
				}
				return table.Text(names(x, r.Pass.Dirty))
			}),
		of.Text(80, "change", "change",
			"changes of values and grids (from → to) and of routes; +: now launched; -: no longer launched; p: only params changed",
			func(r *analyze.ResizeRow) string { return resizeChange(x, r) }),
		of.Words(80, "outcome", "",
			"no-op: nothing changed; glitch: some inputs were not updated yet; deferred: planning failed and was tried again later",
			func(r *analyze.ResizeRow) table.Cell {
				if !r.Planning() {
					return table.Cell{}
				}
				return table.Text(outcome(r.Hook))
			}),
		of.Cell(80, table.Measured, "us", "CPU µs", "us",
			"CPU time of the re-planning; for a group of equal layers, the sum over the layers",
			func(r *analyze.ResizeRow) table.Cell {
				if !r.Planning() {
					return table.Cell{}
				}
				sum := int64(0)
				for _, h := range r.Hooks {
					ns, ok := h.NS.NS()
					if !ok {
						return table.Missing()
					}
					sum = analyze.Add(sum, ns)
				}
				return table.Number(float64(sum)/1e3, 2)
			}),
	}, table.Tree(rows, func(r *analyze.ResizeRow) tree.Row { return r.Row }))
	s := &x.Trace.Steps[step]
	which := table.Say(3, "s%d %s at position %d", s.Index, s.Phase, s.Position)
	if s.Phase == trace.Execute { // a program has no positions
		which.Text = fmt.Sprintf("s%d %s", s.Index, s.Phase)
	}
	parts := resizeParts(summary, s.Resize.Order)
	if x.Trace.Engine != "" {
		which.Text = fmt.Sprintf("s%d %s", s.Index, s.Phase)
		parts = []table.Segment{{Rank: 0, Text: "the profile contains no shapes and no re-planning"}}
	}
	t.Title = []table.Line{table.Title(append([]table.Segment{which}, parts...)...)}
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

func resizeLabel(x *analyze.Index, r *analyze.ResizeRow) string {
	if r.Hook == nil {
		return fmt.Sprintf("pass %d: %s", r.Pass.Index, table.Plural(len(r.Pass.Hooks), "operator"))
	}
	o := &x.Trace.Graph.Ops[r.Hook.Op]
	within := func(name string) string { // the parent row already names the layer
		if o.Layer != nil {
			return analyze.InLayer(name, *o.Layer)
		}
		return name
	}
	switch {
	case r.Change != nil:
		return within(x.Trace.Graph.Values[r.Change.Value].Name)
	case r.Plan != nil:
		return within(x.Name(analyze.Changed(x.Trace, *r.Plan)))
	case len(r.Hooks) > 1:
		return fmt.Sprintf("%s ×%d", o.Place(), len(r.Hooks))
	case r.Grouped:
		return analyze.LayerName(*o.Layer)
	}
	return o.Name
}

// names lists the names of values. A long list shows only the first three.
func names(x *analyze.Index, ids []trace.ValueID) string {
	out := make([]string, len(ids))
	for i, v := range ids {
		out[i] = x.Trace.Graph.Values[v].Name
	}
	return analyze.SomeOf(out)
}

func resizeChange(x *analyze.Index, r *analyze.ResizeRow) string {
	switch {
	case r.Change != nil:
		return valueChange(x, r.Change)
	case r.Plan != nil:
		return planChange(x, *r.Plan)
	case r.Hook == nil:
		return ""
	}
	return hookChange(x, r.Hook)
}

// triggers returns the names of the values whose changes caused the hooks of a row. If the row merges equal
// layers, the names are relative to the layer.
func triggers(x *analyze.Index, hooks []*trace.Hook) string {
	if len(hooks) == 1 {
		return names(x, hooks[0].Triggers)
	}
	var names []string
	for _, h := range hooks {
		for _, v := range h.Triggers {
			name := x.Trace.Graph.Values[v].Name
			if by := x.Producers(v); len(by) > 0 {
				if o := &x.Trace.Graph.Ops[by[0]]; o.Layer != nil {
					name = analyze.InLayer(name, *o.Layer)
				}
			}
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return analyze.SomeOf(names)
}

// hookChange describes the changes of a hook: grids and routes of its dispatches, then shapes.
func hookChange(x *analyze.Index, h *trace.Hook) string {
	var parts []string
	say := func(s string) {
		if !slices.Contains(parts, s) {
			parts = append(parts, s)
		}
	}
	params := false
	for _, c := range h.Plans {
		if c.From == nil && c.To == nil {
			continue
		}
		from, to := analyze.PlanOf(x.Trace, c.From), analyze.PlanOf(x.Trace, c.To)
		d, label := trace.DiffPlans(from, to), x.Trace.Graph.Dispatches[analyze.Changed(x.Trace, c)].Label
		params = params || d.Params
		if said := planDiffText(d, from, to); d.Regrids() {
			say(strings.TrimSpace(label + " " + said))
		}
	}
	for i := range h.Changed {
		say(valueChange(x, &h.Changed[i]))
	}
	if params && len(parts) == 0 {
		parts = []string{"p"}
	}
	return strings.Join(parts, " · ")
}

// planDiffText describes how two plans differ apart from their params: "48→96 r batch8→gemv".
func planDiffText(d trace.PlanDiff, from, to *trace.Plan) string {
	switch {
	case d.New:
		return "+"
	case d.Gone:
		return "-"
	}
	var parts []string
	if d.Grid {
		parts = append(parts, gridDiffText(from, to))
	}
	if d.Route {
		a, b := from.Route, to.Route
		if a == b {
			a, b = from.Kernel, to.Kernel
		}
		parts = append(parts, "r "+a+"→"+b)
	}
	if d.Text {
		parts = append(parts, "k "+textOf(from)+"→"+textOf(to))
	}
	return strings.Join(parts, " ")
}

// textOf returns "own" if the plan runs the kernel's original source, else the beginning of the edited
// source's hash.
func textOf(p *trace.Plan) string {
	_, hash, _ := strings.Cut(p.Kernel, "+")
	return cmp.Or(hash, "own")
}

// gridDiffText formats the change of a grid: "48→96".
func gridDiffText(from, to *trace.Plan) string {
	return table.Grid(from.Workgroups) + "→" + table.Grid(to.Workgroups)
}

// valueChange formats a change: "1×42 → 1×1", or "57 → 58" for a SymInt.
func valueChange(x *analyze.Index, c *trace.Change) string {
	return Shape(x, c.Value, c.From) + " → " + Shape(x, c.Value, c.To)
}

// Shape formats the live shape of a value, or the value of a SymInt. It returns "–" for a value that the step
// does not compute. In older traces, a scratch value that is not computed has a dimension of 0.
func Shape(x *analyze.Index, v trace.ValueID, dims []int) string {
	if dims == nil || x.Trace.Graph.Values[v].Role == trace.RoleScratch && slices.Contains(dims, 0) {
		return table.Unmeasured
	}
	return table.Shape(dims)
}

// planChange describes the differences between two plans: grid, kernel and params.
func planChange(x *analyze.Index, c trace.PlanChange) string {
	from, to := analyze.PlanOf(x.Trace, c.From), analyze.PlanOf(x.Trace, c.To)
	d := trace.DiffPlans(from, to)
	switch {
	case d.Gone:
		return "not launched"
	case d.New:
		return strings.TrimSpace(fmt.Sprintf("launched: %s, grid %s %s", to.Kernel, table.Grid(to.Workgroups),
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
