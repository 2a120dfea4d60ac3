package curves

import (
	"fmt"
	"slices"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
)

// Change is a change of a dispatch's grid or route along a line of the forecast. The grid or route changes
// at each place from At to Until. The forecast is exact, because it is computed from plans. A plan is nil
// if the dispatch does not run.
type Change struct {
	At, Until int
	From, To  *trace.Plan // plans before At, and at Until
}

// Rerouted reports whether the kernel or the route changes, or whether the dispatch starts or stops
// running. An edited kernel source does not count as another kernel.
func (c *Change) Rerouted() bool { return c.From.Reroutes(c.To) }

// PlanOn returns the plan of a dispatch at a place of a line, and nil if the dispatch does not run there.
func PlanOn(l *trace.Line, id trace.DispatchID, at int) *trace.Plan {
	if p, runs := l.Plan(id, at); runs {
		return &p
	}
	return nil
}

// ChangesOn returns all changes of a dispatch along a line.
func ChangesOn(l *trace.Line, id trace.DispatchID) []Change {
	var list []Change
	add := func(at, until int) {
		from, to := PlanOn(l, id, at-1), PlanOn(l, id, until)
		if n := len(list) - 1; n >= 0 && list[n].Until == at-1 && !list[n].Rerouted() &&
			!from.Reroutes(to) {
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
		if i > 0 && analyze.LaunchesOtherwise(PlanOn(l, id, s.From-1), PlanOn(l, id, s.From)) {
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
		case bends: // the grid is not linear in the place, so it may not change at every place
			for at := s.From + 1; at <= end; at++ {
				if analyze.LaunchesOtherwise(PlanOn(l, id, at-1), PlanOn(l, id, at)) {
					add(at, at)
				}
			}
		case moves:
			add(s.From+1, end)
		}
	}
	return list
}

// line returns the line of the forecast along which a step may move, and nil if no line contains the step.
// Along the axis of tokens, line returns the line of prompts that begin at position 0, whatever the
// position of the step is.
func line(x *analyze.Index, tokens, position int, along string) *trace.Line {
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

// Changes are the next and the previous change of a dispatch's grid or route around a step, according to
// the forecast.
type Changes struct {
	Along string // the varying axis: position or tokens
	// At is the fixed coordinate: the number of tokens of the step, or position 0 along the axis of tokens.
	At int
	// Place is the place of the step on the line, and Last is the end of the line. If Next is nil, the
	// dispatch keeps its grid up to Last.
	Place, Last    int
	Next, Previous *Change // nil if the forecast has no such change
}

// Around finds the changes of a dispatch before and after a step. Around returns false if the trace has no
// forecast for the step. Along the axis of tokens, the result covers prompts that begin at position 0.
func Around(x *analyze.Index, step int, id trace.DispatchID, along string) (Changes, bool) {
	s := &x.Trace.Steps[step]
	l := line(x, len(s.Tokens), s.Position, along)
	if l == nil {
		return Changes{}, false
	}
	c := Changes{Along: along, At: l.At, Place: s.Position, Last: l.To}
	if along == trace.AlongTokens {
		c.Place = len(s.Tokens)
	}
	at := func(place int) *Change {
		return &Change{place, place, PlanOn(l, id, place-1), PlanOn(l, id, place)}
	}
	for _, change := range ChangesOn(l, id) {
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

// ForecastRow is a change of all dispatches that share a trace.Course.
type ForecastRow struct {
	Line   *trace.Line
	First  trace.DispatchID
	Others int // number of further dispatches that share the course
	Change Change
}

// LineName returns a title for a line of the forecast.
func LineName(l *trace.Line) string {
	switch {
	case l.Along == trace.AlongTokens:
		return fmt.Sprintf("tokens from pos %d", l.At)
	case l.At == 1:
		return "position, decode"
	}
	return fmt.Sprintf("position, %d tokens", l.At)
}

// ForecastRows returns the changes along a line, in order of place.
func ForecastRows(x *analyze.Index, l *trace.Line) []ForecastRow {
	first := make([]int, len(l.Courses)) // by course: index in groups plus 1; 0 if not in groups yet
	var groups []ForecastRow
	for i, course := range l.Dispatches {
		if k := first[course]; k > 0 {
			groups[k-1].Others++
			continue
		}
		groups = append(groups, ForecastRow{Line: l, First: trace.DispatchID(i)})
		first[course] = len(groups)
	}
	var rows []ForecastRow
	for _, g := range groups {
		for _, c := range ChangesOn(l, g.First) {
			row := g
			row.Change = c
			rows = append(rows, row)
		}
	}
	slices.SortStableFunc(rows, func(a, b ForecastRow) int { return a.Change.At - b.Change.At })
	return rows
}
