package slopes

import (
	"fmt"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/curves"
	"gpuscope/trace/table"
)

// ChangeText formats a change: "576: 64 → 72", "2–512, each: 1 → 512", "5: batch4 → batch8, grid 24 → 48".
func ChangeText(c curves.Change) string {
	place := fmt.Sprint(c.At)
	if c.Until > c.At {
		place = fmt.Sprintf("%d–%d, each", c.At, c.Until)
	}
	if c.Rerouted() {
		return fmt.Sprintf("%s: %s → %s, grid %s → %s", place, curves.RouteOf(c.From), curves.RouteOf(c.To),
			gridOf(c.From),
			gridOf(c.To))
	}
	return fmt.Sprintf("%s: %s → %s", place, gridOf(c.From), gridOf(c.To))
}

// Lines describes a row of the curves at a position or token count: its plan, its times, and where its grid
// and route change.
func Lines(c *curves.Curves, r *curves.CurveRow, at int) []string {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	what := fmt.Sprintf("position %s", table.Integer(at))
	if c.Along == trace.AlongTokens {
		what = fmt.Sprintf("%s from position 0", table.Plural(at, "token"))
	}
	if n := len(r.Dispatches); n > 0 {
		add("%s: %s at %s", r.Name, table.Plural(n, "dispatch"), what)
	} else {
		add("%s at %s", r.Name, what)
	}
	exactLines(c, r, at, add)
	stateLines(c, r, at, add)
	for _, p := range r.Points {
		if p.At == at {
			all := ""
			if r.Dispatches == nil {
				all = ", " + c.Of
			} else if len(r.Dispatches) > 1 {
				all = ", all dispatches"
			}
			add("measured  %s in s%d%s", QuantityText(curves.Time, p.NS), c.Index.Trace.Steps[p.Step].Index,
				all)
		}
	}
	if f := r.Fit; f != nil {
		add("line      %s at position 0, slope %s per 1,000 positions · n = %d steps",
			QuantityText(curves.Time, f.A), slope(f), f.N)
		if len(f.Out) > 0 {
			add("          outliers excluded: %s", leftOut(c, r))
		}
		switch {
		case f.N < curves.MinSlopePoints:
			add("          slope not significant: fewer than %d steps", curves.MinSlopePoints)
		case !f.Significant():
			add("          slope not significant: less than three times its error")
		}
		if r.Drift > 0 {
			add("drift     the plan and the work are the same at every position, but the time changes: the GPU clock or "+
				"the device drifted. The drift is %.0f %% of the slope of the whole step", r.Drift)
		}
	}
	if b := r.Baseline; b != nil && r.Fit != nil {
		by := delta(r).Text
		if !b.Equal {
			by += " µs"
		}
		add("baseline  %s at position %.0f in %s; Δ %s at position %.0f", QuantityText(curves.Time, b.NS),
			b.At, c.Baseline.Selection.Called(), by, r.Fit.Last)
	}
	for _, s := range r.Shifts {
		add("shift     times change by %+.1f ± %.1f µs from position %.0f on%s", s.NS/1e3, s.SE/1e3, s.At,
			cause(c, s.At))
	}
	trialLines(c, r, add)
	changes := c.ChangesOf(r)
	if c.Line != nil && len(changes) == 0 {
		add("The grid is the same on the whole axis, from %d to %d.", c.Line.From, c.Line.To)
	}
	for i, change := range changes {
		name := ""
		if r.Dispatches == nil {
			name = change.Row.Name + " "
		}
		if i == 0 {
			add("")
			add("Changes of grid or route")
		}
		if i == 200 {
			add("and %d more; gpuscope trace show --table forecast lists all", len(changes)-i)
			break
		}
		mark := " "
		if change.At <= at && at <= change.Until {
			mark = "▸"
		}
		add("%s %s%s", mark, name, ChangeText(change.Change))
	}
	return lines
}

// exactLines describes the plans at a position or token count.
func exactLines(c *curves.Curves, r *curves.CurveRow, at int, add func(string, ...any)) {
	if c.Line == nil || at < c.Line.From || at > c.Line.To {
		return
	}
	if len(r.Dispatches) > 0 {
		p := curves.PlanOn(c.Line, r.Dispatches[0], at)
		if p == nil {
			add("not launched")
			return
		}
		add("grid      %s each · kernel %s", table.Grid(p.Workgroups), p.Kernel)
		if p.Route != "" {
			add("route     %s: %s", p.Route, p.Reason)
		}
		if w := analyze.WasteOf(p, nil); w.Groups() > 0 {
			add("waste     %s of %s workgroups in each dispatch have no work", table.Integer(w.Groups()),
				table.Integer(w.Launched))
		}
		if len(r.Routes) > 1 {
			add("routes    %s", routesOver(r.Routes))
		}
	}
	for _, q := range []curves.Quantity{curves.Grid, curves.Bytes, curves.Idle} {
		if v, ok := c.Exact(r, q, at); ok {
			add("%-9s %s %s", q, QuantityText(q, v),
				map[curves.Quantity]string{curves.Grid: "in total", curves.Bytes: "moved, modelled", curves.Idle: "of lanes idle"}[q])
		}
	}
}

// cause names the plan change that explains a change of the times at position `at`. The plan change may be
// up to two positions away.
func cause(c *curves.Curves, at float64) string {
	for i := range c.Rows {
		for _, change := range c.Rows[i].Changes {
			if d := float64(change.At) - at; change.At == change.Until && d >= -2 && d <= 2 {
				return fmt.Sprintf(": %s %s", c.Rows[i].Name, ChangeText(change))
			}
		}
	}
	return ": no grid changes at this position"
}

// trialLines lists the measured times of routes and marks the fastest route.
func trialLines(c *curves.Curves, r *curves.CurveRow, add func(string, ...any)) {
	if fastest := r.Fastest(); len(fastest) > 0 {
		add("fastest   route for each number of tokens: %s", routesOver(fastest))
	}
	for i := 0; i < len(r.Trials); {
		from := i
		best := i
		planned := -1
		for ; i < len(r.Trials) && r.Trials[i].Tokens == r.Trials[from].Tokens; i++ {
			if r.Trials[i].NS < r.Trials[best].NS {
				best = i
			}
			if r.Trials[i].Planned {
				planned = i
			}
		}
		if from == 0 {
			add("")
			add("Each route was timed in isolation %d times; ▸ marks the route that the plan chooses",
				r.Trials[0].N)
		}
		for k := from; k < i; k++ {
			t, mark := &r.Trials[k], " "
			if t.Planned {
				mark = "▸"
			}
			said := ""
			if k == best && planned >= 0 && best != planned && curves.Faster(t, &r.Trials[planned]) {
				said = fmt.Sprintf(" · %.2f× as fast", float64(r.Trials[planned].NS)/float64(t.NS))
			}
			add("%s M %-4d %-9s %s ± %s%s", mark, t.Tokens, t.Route, QuantityText(curves.Time, float64(t.NS)),
				QuantityText(curves.Time, float64(t.Q3NS-t.Q1NS)/2), said)
		}
	}
}
