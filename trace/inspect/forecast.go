package inspect

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"gpuscope/trace"
	"gpuscope/trace/table"
)

// Change is where the grid or the route of a dispatch changes along a line of the forecast: at each place
// from At to Until. It is exact. A plan is nil where the dispatch does not run.
type Change struct {
	At, Until int
	From, To  *trace.Plan // before At, and at Until
}

// Rerouted says that the change is one of kernel or route, or of whether the dispatch runs at all. Another
// text of a kernel is none.
func (c *Change) Rerouted() bool { return rerouted(c.From, c.To) }

func rerouted(a, b *trace.Plan) bool {
	if a == nil || b == nil {
		return a != b
	}
	return a.Route != b.Route ||
		a.Kernel != b.Kernel && trace.OwnKernel(a.Kernel) != trace.OwnKernel(b.Kernel)
}

// planOn is what a dispatch is given at a place of a line, nil where it does not run.
func planOn(l *trace.Line, id trace.DispatchID, at int) *trace.Plan {
	if p, runs := l.Plan(id, at); runs {
		return &p
	}
	return nil
}

// changesOn are all changes of a dispatch along a line.
func changesOn(l *trace.Line, id trace.DispatchID) []Change {
	var list []Change
	add := func(at, until int) {
		from, to := planOn(l, id, at-1), planOn(l, id, until)
		if n := len(list) - 1; n >= 0 && list[n].Until == at-1 && !list[n].Rerouted() && !rerouted(from, to) {
			list[n].Until, list[n].To = until, to
			return
		}
		list = append(list, Change{at, until, from, to})
	}
	stretches := l.Course(id).Stretches
	for i := range stretches {
		s, end := &stretches[i], l.To
		if i+1 < len(stretches) {
			end = stretches[i+1].From - 1
		}
		if i > 0 && launchesOtherwise(planOn(l, id, s.From-1), planOn(l, id, s.From)) {
			add(s.From, s.From)
		}
		if s.Kernel == "" || s.From == end {
			continue
		}
		moves, bends := false, false
		for _, r := range s.Workgroups {
			moves, bends = moves || !r.Constant(), bends || r[2] != 0
		}
		switch {
		case bends: // it may stand still on the way
			for at := s.From + 1; at <= end; at++ {
				if launchesOtherwise(planOn(l, id, at-1), planOn(l, id, at)) {
					add(at, at)
				}
			}
		case moves:
			add(s.From+1, end)
		}
	}
	return list
}

// line is the line of the forecast along which a step may move: nil where there is none that holds it. A
// prompt begins at position 0, so along the tokens a step moves among prompts from there, wherever it stands.
func (x *Index) line(tokens, position int, along string) *trace.Line {
	if x.Trace.Forecast == nil {
		return nil
	}
	at, other := position, tokens
	if along == trace.AlongTokens {
		at, other = tokens, 0
	}
	for i := range x.Trace.Forecast.Lines {
		l := &x.Trace.Forecast.Lines[i]
		if l.Along == along && l.At == other && at >= l.From && at <= l.To {
			return l
		}
	}
	return nil
}

// Changes are the next and the previous change of a dispatch's grid or route, as the forecast has them.
type Changes struct {
	Along string // position or tokens: what moves
	At    int    // what stays: the tokens of the step; along the tokens position 0
	// Place is where the step stands on the line, Last where that ends: a dispatch without a Next keeps its
	// grid up to there.
	Place, Last    int
	Next, Previous *Change // of one place each; nil where there is none
}

// Changes finds the changes around a step; false where the trace has no forecast for it. Along the tokens
// they are those of a prompt that begins at position 0.
func (x *Index) Changes(step int, id trace.DispatchID, along string) (Changes, bool) {
	s := &x.Trace.Steps[step]
	l := x.line(len(s.Tokens), s.Position, along)
	if l == nil {
		return Changes{}, false
	}
	c := Changes{Along: along, At: l.At, Place: s.Position, Last: l.To}
	if along == trace.AlongTokens {
		c.Place = len(s.Tokens)
	}
	at := func(place int) *Change {
		return &Change{place, place, planOn(l, id, place-1), planOn(l, id, place)}
	}
	for _, change := range changesOn(l, id) {
		if change.At <= c.Place {
			c.Previous = at(min(change.Until, c.Place))
		}
		if change.Until > c.Place {
			c.Next = at(max(change.At, c.Place+1))
			break
		}
	}
	return c, true
}

// forecastRow is a change of dispatches that go one course.
type forecastRow struct {
	line   *trace.Line
	first  trace.DispatchID
	others int // that have the same course
	change Change
}

func init() {
	register(Table{
		Name: "forecast", Takes: NoSteps,
		Doc: "where the grid or the route of each dispatch changes with position and prompt length, from its plan",
		Of: func(_ context.Context, x *Index, _ Options) (*table.Table, error) {
			return x.ForecastTable(), nil
		},
	})
}

// ForecastTable is the table of all changes that the forecast has. Dispatches that change alike are one row.
func (x *Index) ForecastTable() *table.Table {
	var rows []forecastRow
	lines := 0
	if f := x.Trace.Forecast; f != nil {
		lines = len(f.Lines)
		for i := range f.Lines {
			rows = append(rows, x.forecastRows(&f.Lines[i])...)
		}
	}
	at := table.By(rows)
	plan := func(of func(*forecastRow) *trace.Plan, say func(*trace.Plan) table.Cell) func(int) table.Cell {
		return at(func(r *forecastRow) table.Cell {
			if p := of(r); p != nil {
				return say(p)
			}
			return table.Text("not run")
		})
	}
	from := func(r *forecastRow) *trace.Plan { return r.change.From }
	to := func(r *forecastRow) *trace.Plan { return r.change.To }
	grid := func(p *trace.Plan) table.Cell {
		return table.Cell{Text: table.Grid(p.Workgroups), Number: float64(product(p.Workgroups)), Has: true}
	}
	route := func(p *trace.Plan) table.Cell { return table.Text(cmp.Or(p.Route, p.Kernel)) }
	t := table.New("forecast", []table.Column{
		{
			Name: "along", Title: "along", Width: 80, Doc: "what moves: position, or the tokens of a prompt",
			Of: at(func(r *forecastRow) table.Cell { return table.Text(lineName(r.line)) }),
		},
		{
			Name: "dispatch", Title: "#", Unit: "dispatch", Is: table.Exact, Right: true, Width: 80,
			Doc: "the first dispatch that changes so",
			Of:  at(func(r *forecastRow) table.Cell { return table.Count(int(r.first)) }),
		},
		{
			Name: "op", Title: "op", Width: 80, Doc: "its operator",
			Of: at(func(r *forecastRow) table.Cell { return table.Text(x.Name(r.first)) }),
		},
		{
			Name: "alike", Title: "×", Unit: "dispatches", Is: table.Exact, Right: true, Width: 80,
			Doc: "dispatches that change so: those of equal layers",
			Of:  at(func(r *forecastRow) table.Cell { return table.Count(r.others + 1) }),
		},
		{
			Name: "at", Title: "at", Unit: "place", Is: table.Exact, Right: true, Width: 80,
			Doc: "position, or number of tokens, of the change",
			Of:  at(func(r *forecastRow) table.Cell { return table.Count(r.change.At) }),
		},
		{
			Name: "until", Title: "until", Unit: "place", Is: table.Exact, Right: true, Width: 80,
			Doc: "it changes at each place up to here",
			Of:  at(func(r *forecastRow) table.Cell { return table.Count(r.change.Until) }),
		},
		{
			Name: "from_grid", Title: "grid", Unit: "workgroups", Is: table.Exact, Right: true, Width: 80,
			Doc: "before it", Of: plan(from, grid),
		},
		{
			Name: "to_grid", Title: "to", Unit: "workgroups", Is: table.Exact, Right: true, Width: 80,
			Doc: "after it", Of: plan(to, grid),
		},
		{
			Name: "from_route", Title: "route", Width: 80, Doc: "before it; the kernel of what has no routes",
			Of: plan(from, route),
		},
		{
			Name: "to_route", Title: "to route", Width: 80, Doc: "after it", Of: plan(to, route),
		},
		{
			Name: "reason", Title: "why", Width: 140, Doc: "of the route after it",
			Of: plan(to, func(p *trace.Plan) table.Cell { return table.Text(p.Reason) }),
		},
	}, table.Flat(len(rows), func(row int) string {
		r := &rows[row]
		return fmt.Sprintf("%s %d %d@%d", r.line.Along, r.line.At, r.first, r.change.At)
	}))
	t.Title = []table.Line{table.Title(
		table.Say(0, "%s of %s", table.Plural(len(rows), "change"), table.Plural(len(x.Trace.Graph.Dispatches), "dispatch")),
		table.Say(2, "planned along %s", table.Plural(lines, "line")),
	)}
	if lines == 0 {
		t.Notes = append(t.Notes, "the trace has no forecast: it was recorded before there was one, or is of no model")
	}
	return t
}

// lineName says what a line is of.
func lineName(l *trace.Line) string {
	switch {
	case l.Along == trace.AlongTokens:
		return fmt.Sprintf("tokens from pos %d", l.At)
	case l.At == 1:
		return "position, decode"
	}
	return fmt.Sprintf("position, %d tokens", l.At)
}

// forecastRows are the changes along a line, in order of place.
func (x *Index) forecastRows(l *trace.Line) []forecastRow {
	first := make([]int, len(l.Courses)) // place in groups, plus one
	var groups []forecastRow
	for i, course := range l.Dispatches {
		if k := first[course]; k > 0 {
			groups[k-1].others++
			continue
		}
		groups = append(groups, forecastRow{line: l, first: trace.DispatchID(i)})
		first[course] = len(groups)
	}
	var rows []forecastRow
	for _, g := range groups {
		for _, c := range changesOn(l, g.first) {
			row := g
			row.change = c
			rows = append(rows, row)
		}
	}
	slices.SortStableFunc(rows, func(a, b forecastRow) int { return a.change.At - b.change.At })
	return rows
}
