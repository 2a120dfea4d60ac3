package curves

import (
	"slices"
	"strings"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
)

// RowChange is a change of a grid or route in a row of the curves.
type RowChange struct {
	Change
	Row *CurveRow
}

// ChangesOf returns the changes of a row along the axis, in order of place. For the whole step, ChangesOf
// returns the changes of all rows.
func (c *Curves) ChangesOf(r *CurveRow) []RowChange {
	var list []RowChange
	for i := range c.Rows {
		if row := &c.Rows[i]; row == r || r.Dispatches == nil {
			for _, change := range row.Changes {
				list = append(list, RowChange{change, row})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b RowChange) int { return a.At - b.At })
	return list
}

// RouteOf returns the route of a plan. If the dispatch has no choice of routes, this is the name of the
// kernel. If the plan is nil, it is "not run".
func RouteOf(p *trace.Plan) string {
	switch {
	case p == nil:
		return "not run"
	case p.Route == "":
		return p.Kernel
	}
	return p.Route
}

// Fastest returns the fastest route for each range of prompt lengths, in ascending order. It uses isolated
// timings. Routes that do not differ significantly are joined by "=". If the operator has no choice of
// routes, Fastest returns nil.
func (r *CurveRow) Fastest() []RouteSpan {
	if len(r.Trials) > 0 && r.Trials[0].Route == "" {
		return nil
	}
	var spans []RouteSpan
	for i := 0; i < len(r.Trials); {
		from, best := i, i
		for ; i < len(r.Trials) && r.Trials[i].Tokens == r.Trials[from].Tokens; i++ {
			if r.Trials[i].NS < r.Trials[best].NS {
				best = i
			}
		}
		at := r.Trials[from].Tokens
		var routes []string
		for k := from; k < i; k++ {
			if k == best || !Faster(&r.Trials[best], &r.Trials[k]) {
				routes = append(routes, r.Trials[k].Route)
			}
		}
		route := strings.Join(routes, " = ")
		if n := len(spans) - 1; n >= 0 && spans[n].Route == route {
			spans[n].To = at
			continue
		}
		spans = append(spans, RouteSpan{From: at, To: at, Route: route})
	}
	return spans
}

// Faster reports whether trial t is significantly faster than trial u. Both trials need enough runs, and the
// upper quartile of t must be less than the lower quartile of u.
func Faster(t, u *trace.Trial) bool {
	return min(t.N, u.N) >= trace.FewestWithin && t.Q3NS < u.Q1NS
}

// Crossings returns the prompt lengths between which the route of a dispatch changes: for each change, the
// last length with the old route and the first with the new route. The result also includes the ends of the
// line and the extra lengths. Lengths at which the operator launches nothing are left out.
func Crossings(x *analyze.Index, id trace.DispatchID, extra ...int) []int {
	l := line(x, 1, 0, trace.AlongTokens)
	if l == nil {
		return extra
	}
	lengths := append(slices.Clone(extra), l.From, l.To)
	for _, s := range routesOn(l, id)[1:] {
		lengths = append(lengths, s.From-1, s.From)
	}
	slices.Sort(lengths)
	g := &x.Trace.Graph
	return slices.DeleteFunc(slices.Compact(lengths), func(m int) bool {
		return !slices.ContainsFunc(g.Dispatches, func(d trace.Dispatch) bool {
			if d.Op != g.Dispatches[id].Op {
				return false
			}
			_, runs := l.Plan(d.ID, m)
			return runs
		})
	})
}
