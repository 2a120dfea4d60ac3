package curves

import (
	"fmt"
	"slices"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
)

// Change is a change of the grid or route of a dispatch along a line of the forecast. It occurs in one place,
// or in every place from At to Until. The forecast is exact because it consists of plans. From or To is nil
// if the dispatch does not run there.
type Change struct {
	At, Until int
	From, To  *trace.Plan // plan just before At, and plan at Until
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
		if i > 0 && trace.LaunchesOtherwise(PlanOn(l, id, s.From-1), PlanOn(l, id, s.From)) {
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
		case bends: // the grid is not a linear function of the place, so not every place has a change
			for at := s.From + 1; at <= end; at++ {
				if trace.LaunchesOtherwise(PlanOn(l, id, at-1), PlanOn(l, id, at)) {
					add(at, at)
				}
			}
		case moves:
			add(s.From+1, end)
		}
	}
	return list
}

// line returns the line of the forecast that contains a step, or nil if there is none. If `along` is
// AlongTokens, this is the line of the prompts that begin at position 0, even if the step begins at another
// position.
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

// Changes holds the next and the previous change of a dispatch's grid or route, as seen from a step,
// according to the forecast.
type Changes struct {
	Along string // the varying axis: position or tokens
	// At is the coordinate that is fixed along the line: the number of tokens, or position 0 if Along is
	// AlongTokens.
	At int
	// Place is where the step is on the line, and Last is the end of the line. If Next is nil, the grid and
	// the route stay the same up to Last.
	Place, Last    int
	Next, Previous *Change // nil if the line has no such change
}

// Around finds the changes of a dispatch before and after a step. The bool is false if the forecast does not
// contain the step. If `along` is AlongTokens, the changes are those of prompts that begin at position 0.
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

// ForecastRow is one change that applies to all dispatches with the same trace.Course.
type ForecastRow struct {
	Line   *trace.Line
	First  trace.DispatchID
	Others int // number of other dispatches with this course
	Change Change
}

// LineName returns a title for a line of the forecast.
func LineName(l *trace.Line) string {
	switch {
	case l.Along == trace.AlongTokens:
		return fmt.Sprintf("tokens from pos %d", l.At)
	case l.At == 1:
		return "position, at 1 token per step"
	}
	return fmt.Sprintf("position, at %d tokens per step", l.At)
}

// ForecastRows returns the changes along a line, in order of place.
func ForecastRows(x *analyze.Index, l *trace.Line) []ForecastRow {
	first := make([]int, len(l.Courses)) // for each course, 1 plus the index of its group; 0 if none yet
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
