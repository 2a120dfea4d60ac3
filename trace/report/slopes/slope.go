package slopes

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/curves"
	"gpuscope/trace/report"
	"gpuscope/trace/table"
)

func init() {
	report.Register(report.Table{
		Name: "slope", Takes: report.NoSteps, Compares: true,
		Doc: "how decode time grows with the position, and which operator causes it",
		Of: func(ctx context.Context, x *analyze.Index, o analyze.Options) (*table.Table, error) {
			return curvesTable(ctx, x, trace.AlongPosition, o.Baseline)
		},
	})
	report.Register(report.Table{
		Name: "lengths", Takes: report.NoSteps,
		Doc: "route and grid of each operator for each prompt length",
		Of: func(ctx context.Context, x *analyze.Index, _ analyze.Options) (*table.Table, error) {
			return curvesTable(ctx, x, trace.AlongTokens, nil)
		},
	})
}

func curvesTable(ctx context.Context, x *analyze.Index, along string,
	baseline *analyze.Baseline) (*table.Table,
	error,
) {
	c, err := curves.Of(ctx, x, along, baseline)
	if err != nil {
		return nil, err
	}
	return Table(c), nil
}

// Table returns a table with one row for each row of the curves.
func Table(c *curves.Curves) *table.Table {
	columns, name := slopeColumns(c), "slope"
	if c.Along == trace.AlongTokens {
		columns, name = lengthColumns(c), "lengths"
	}
	key := func(row int) string { return c.Rows[row].Name }
	t := table.New(name, columns, table.Flat(len(c.Rows), key))
	t.From = c
	t.Title = []table.Line{table.Title(append(Verdict(c), baseParts(c)...)...)}
	if c.Line == nil {
		t.Notes = append(t.Notes, "no forecast in this trace: only steps that ran are shown")
	}
	return t
}

// places is the number of positions to which a displayed slope refers. A slope is a time per 1,000
// positions.
const places = 1000

// slopeUnit returns the time unit for displayed slopes. `largest` is the largest slope in ns per 1,000
// positions. On a software device a step takes thousands of times as long, so a larger unit is needed.
func slopeUnit(largest float64) (ns float64, name string) {
	switch {
	case largest >= 1e10:
		return 1e9, "s"
	case largest >= 1e7:
		return 1e6, "ms"
	}
	return 1e3, "µs"
}

func slopeColumns(c *curves.Curves) []table.Column {
	of := table.ColumnsOf(c.Rows)
	fit := func(f func(*curves.Fit) table.Cell) func(*curves.CurveRow) table.Cell {
		return func(r *curves.CurveRow) table.Cell {
			if r.Fit == nil {
				return table.Missing()
			}
			return f(r.Fit)
		}
	}
	// end returns a function that computes cells with the time at one end of the fitted line.
	end := func(at func(*curves.Fit) float64) func(*curves.CurveRow) table.Cell {
		return fit(func(f *curves.Fit) table.Cell {
			ns, known := f.Time(at(f))
			if !known {
				return table.Missing()
			}
			return table.Microseconds(ns/1e3, 1)
		})
	}
	largest := 0.0
	for i := range c.Rows {
		if f := c.Rows[i].Fit; f != nil {
			largest = max(largest, places*f.SE, places*math.Abs(f.B))
		}
	}
	unit, name := slopeUnit(largest)
	slope := func(nsPerPlace float64) table.Cell {
		ns := places * nsPerPlace
		return table.Cell{Text: table.Digits(ns / unit), Number: ns / 1e3, Has: true}
	}
	inUnit := func(col table.Column) table.Column { col.TextUnit = name; return col }
	return append(nameColumns(c),
		of.Cell(80, table.Measured, "first_us", "total first", "us",
			"time, in µs, that the row's dispatches take in a step at the first measured position, read from the fitted line; not known if the line is below 0 there",
			end(func(f *curves.Fit) float64 { return f.First })),
		of.Cell(80, table.Measured, "last_us", "total last", "us",
			"time, in µs, that the row's dispatches take in a step at the last measured position, read from the fitted line; not known if the line is below 0 there",
			end(func(f *curves.Fit) float64 { return f.Last })),
		of.Cell(80, table.Measured, "delta_us", "Δ total last", "us",
			"time at the last position minus the baseline's time (from its fitted line or, without a line, the median of its "+
				"steps); = means a difference within the noise",
			delta),
		inUnit(of.Cell(80, table.Measured, "slope_us", name+"/1k pos", "us",
			"time that 1,000 more positions add to a step, in µs (on the screen in the unit of the title); = means "+
				"not significant (less than three times its error)",
			fit(func(f *curves.Fit) table.Cell {
				cell := slope(f.B)
				if !f.Significant() {
					cell.Text = "="
				}
				return cell
			}))),
		inUnit(of.Cell(80, table.Measured, "error_us", "±", "us", "error of the slope, in the unit of the slope",
			fit(func(f *curves.Fit) table.Cell { return slope(f.SE) }))),
		of.Cell(80, table.Measured, "share", "share %", "%",
			"this row's share of the growth of the step's time with the position; drift: the time changes "+
				"although the work does not; ~: estimated from bytes, not timed",
			func(r *curves.CurveRow) table.Cell {
				if r.Dispatches == nil || c.Slope() == nil || r.Share == 0 && r.Fit == nil && !r.Modelled {
					return table.Cell{}
				}
				cell := table.Number(r.Share, 0)
				switch {
				case r.Drift > 0:
					cell.Text = "drift"
				case r.Modelled:
					cell.Text = "~" + cell.Text
				}
				return cell
			}),
		of.Cell(140, table.Exact, "n", "n", "steps",
			"number of steps to which the line is fitted, or number of timed steps if they are too few for a line",
			func(r *curves.CurveRow) table.Cell {
				if r.Fit != nil {
					return table.Count(r.Fit.N)
				}
				return table.Count(len(r.Points))
			}),
		gridColumn(c),
		of.Cell(140, table.Exact, "changes", "grid changes", "changes",
			"how often the grid or route changes along the positions, according to the plans",
			func(r *curves.CurveRow) table.Cell {
				if c.Line == nil || r.Dispatches == nil {
					return table.Cell{}
				}
				return table.Count(len(r.Changes))
			}),
	)
}

func lengthColumns(c *curves.Curves) []table.Column {
	of := table.ColumnsOf(c.Rows)
	return append(nameColumns(c),
		of.Words(80, "routes", "route from N tokens on",
			"routes (kernels if the operator has no routes), each with the smallest prompt length that uses it",
			func(r *curves.CurveRow) table.Cell {
				if r.Dispatches == nil {
					return table.Cell{}
				}
				return table.Text(routesFrom(r.Routes))
			}),
		// The detail shows the fastest routes too, so narrow screens can do without this column.
		of.Text(110, "fastest", "fastest timed",
			"fastest route at each prompt length, by isolated times; "+
				"= joins routes whose times do not differ significantly",
			func(r *curves.CurveRow) string { return routesOver(r.Fastest()) }),
		gridColumn(c),
	)
}

func nameColumns(c *curves.Curves) []table.Column {
	of := table.ColumnsOf(c.Rows)
	return []table.Column{
		of.Text(80, "op", "op", "operator, followed by the name of the dispatch if the operator has several dispatches",
			func(r *curves.CurveRow) string { return r.Name }).AsTree(),
		of.Cell(80, table.Exact, "times", "×", "dispatches", "number of dispatches in the row, one per layer",
			func(r *curves.CurveRow) table.Cell {
				if r.Dispatches == nil {
					return table.Cell{}
				}
				return table.Count(len(r.Dispatches))
			}),
	}
}

func gridColumn(c *curves.Curves) table.Column {
	of := table.ColumnsOf(c.Rows)
	return of.Cell(80, table.Exact, "grid", "grid", "workgroups",
		"planned grid of one dispatch: at the smallest position or prompt length → at the largest",
		func(r *curves.CurveRow) table.Cell {
			if c.Line == nil || r.Dispatches == nil {
				return table.Cell{}
			}
			first := curves.PlanOn(c.Line, r.Dispatches[0], c.Line.From)
			last := curves.PlanOn(c.Line, r.Dispatches[0], c.Line.To)
			cell := table.Text(gridOf(last))
			if last != nil {
				cell.Number, cell.Has = float64(analyze.Product(last.Workgroups)), true
			}
			if gridOf(first) != gridOf(last) {
				cell.Text = gridOf(first) + "→" + gridOf(last)
			}
			return cell
		})
}

func gridOf(p *trace.Plan) string {
	if p == nil {
		return "–"
	}
	return table.Grid(p.Workgroups)
}

// Verdict summarizes the curves in title segments.
func Verdict(c *curves.Curves) []table.Segment {
	if c.Along == trace.AlongTokens {
		return crossover(c)
	}
	total := &c.Rows[0]
	f := total.Fit
	switch {
	case f == nil && c.Index.Trace.Engine != "":
		return []table.Segment{table.Say(0, "no fitted line: the profile contains no positions")}
	case f == nil:
		return []table.Segment{table.Say(0, "%s measured: too few to fit a line",
			table.Plural(len(total.Points), "decode step"))}
	}
	says := says(f, c.Drift())
	parts := []table.Segment{
		{Rank: 0, Text: says, Short: strings.Replace(says, " with position (", " (", 1)},
		table.Say(1, "%s", rate(f)),
	}
	for _, part := range []table.Segment{levelPart(f), ownerPart(c), restPart(c), overRoutes(c)} {
		if part.Text != "" {
			parts = append(parts, part)
		}
	}
	first, known := f.Time(f.First)
	if last, also := f.Time(f.Last); known && also {
		parts = append(parts, table.Say(2, "%s → %s from position %.0f to %.0f",
			QuantityText(curves.Time, first),
			QuantityText(curves.Time, last), f.First, f.Last))
	}
	parts = append(parts, table.Say(3, "%s, timing %s, n %d", c.Of, c.Level, f.N))
	if len(f.Out) > 0 {
		parts = append(parts, table.Segment{
			Rank: 4, Text: "outliers excluded: " + leftOut(c, total),
			Short: table.Plural(len(f.Out), "outlier") + " excluded",
		})
	}
	if c.Cold > 0 {
		parts = append(parts, table.Say(5, "%s excluded", table.Plural(c.Cold, "cold step")))
	}
	return parts
}

// levelPart describes a change of level that the fitted line contains.
func levelPart(f *curves.Fit) table.Segment {
	if f.Level == nil {
		return table.Segment{}
	}
	change := "increase"
	if f.Level.NS < 0 {
		change = "drop"
	}
	by := fmt.Sprintf(" by %s at position %.0f", QuantityText(curves.Time, math.Abs(f.Level.NS)), f.Level.At)
	return table.Segment{Text: "times " + change + by, Short: change + by}
}

// leftOut names the outlier steps that were excluded from the line fit.
func leftOut(c *curves.Curves, r *curves.CurveRow) string {
	names := make([]string, len(r.Fit.Out))
	for i, at := range r.Fit.Out {
		names[i] = fmt.Sprintf("s%d", c.Index.Trace.Steps[r.Points[at].Step].Index)
	}
	return analyze.SomeOf(names)
}

// ownerPart names the operators that cause most of the slope. Operators with indistinguishable slopes are
// named together if they are few, because their order would change from one step to the next.
func ownerPart(c *curves.Curves) table.Segment {
	list := c.Owners()
	if len(list) == 0 {
		return table.Segment{}
	}
	all := 0.0
	names := make([]string, len(list))
	for i := range list {
		all, names[i] = all+list[i].Share, list[i].Name
	}
	first := strings.Join(names, ", ")
	const few = 3
	switch {
	case len(list) > few:
		return table.Segment{
			Text:  fmt.Sprintf("%d operators with similar slopes cause %.0f %% of the slope", len(list), all),
			Short: fmt.Sprintf("%d operators: %.0f %% of the slope", len(list), all),
		}
	case list[0].Modelled:
		return table.Segment{
			Text: fmt.Sprintf("%s: ~%.0f %% of the slope, estimated from bytes (not timed in isolation)",
				first, all),
			Short: fmt.Sprintf("%s: ~%.0f %% of the slope, by bytes", first, all),
		}
	case len(list) > 1:
		return table.Segment{
			Text:  fmt.Sprintf("%s have similar slopes, together %.0f %% of the total", first, all),
			Short: fmt.Sprintf("%s: %.0f %% of the slope", first, all),
		}
	}
	return table.Segment{
		Text:  fmt.Sprintf("%s has %.0f %% of the slope", first, all),
		Short: fmt.Sprintf("%s: %.0f %% of the slope", first, all),
	}
}

// restPart describes the parts of the slope that are missing in ownerPart: the share of the other operators,
// the share of drift, and the share that no operator explains. Such an unexplained share occurs if work moves
// from one operator to another.
func restPart(c *curves.Curves) table.Segment {
	drift := c.Drift()
	var owned, told float64
	for _, r := range c.Owners() {
		owned += r.Share
	}
	timed := false
	for i := range c.Rows[1:] {
		r := &c.Rows[1+i]
		told, timed = told+r.Share, timed || r.Fit != nil
	}
	if c.Slope() == nil || !timed {
		return table.Segment{}
	}
	var text, short []string
	add := func(share float64, long, brief string) {
		if share >= 0.5 {
			text = append(text, fmt.Sprintf("%.0f %% "+long, share))
			short = append(short, fmt.Sprintf("%.0f %% "+brief, share))
		}
	}
	add(told-owned, "is from other operators", "others")
	add(drift, "is drift (the work of the drifting operators does not depend on the position)", "drift")
	add(100-told-drift, "is not explained by any operator", "unexplained")
	return table.Segment{Text: strings.Join(text, ", "), Short: strings.Join(short, ", ")}
}

// overRoutes returns a warning if operators change their routes at positions that the fitted line spans. The
// line is then fitted to two kinds of steps.
func overRoutes(c *curves.Curves) table.Segment {
	f := c.Rows[0].Fit
	var places []string
	for _, change := range c.ChangesOf(&c.Rows[0]) {
		at, p := fmt.Sprint(change.At), float64(change.At)
		if change.Rerouted() && p > f.First && p <= f.Last && !slices.Contains(places, at) {
			places = append(places, at)
		}
	}
	if places == nil {
		return table.Segment{}
	}
	change := "routes change at " + analyze.SomeOf(places)
	return table.Segment{Rank: 1, Text: "one line fitted, although " + change, Short: change}
}

// slope formats the extra time for 1,000 more positions with its error.
func slope(f *curves.Fit) string {
	unit, name := slopeUnit(places * max(math.Abs(f.B), f.SE))
	return fmt.Sprintf("%s ± %s %s", table.Digits(places*f.B/unit), table.Digits(places*f.SE/unit), name)
}

// little is a share of a step's time. A slope hardly matters if it adds less than this share over all
// measured positions.
const little = 0.02

// says returns a text that describes the trend of decode times. If drift causes more than half of the slope,
// the text names drift instead of the position. `drift` is a percentage of the slope.
func says(f *curves.Fit, drift float64) string {
	moved := (f.Last - f.First) / max(1, math.Abs(f.At(f.First)))
	by := " with position"
	if drift > 50 {
		by = ", mostly by drift"
	}
	if f.Level != nil {
		by = ", apart from a change of level"
	}
	if share := math.Abs(f.B) * moved; share < little {
		by += fmt.Sprintf(" (%.1f %%)", 100*share)
	}
	switch {
	case f.Significant() && f.B > 0:
		return "decode slows down" + by
	case f.Significant():
		return "decode speeds up" + by
	case f.N < curves.MinSlopePoints:
		return fmt.Sprintf("%s: too few to fit a slope", table.Plural(f.N, "step"))
	case math.Abs(f.B) > 2*f.SE:
		return fmt.Sprintf("slope not significant (%.1f σ; 3 needed)", math.Abs(f.B)/f.SE)
	case f.Level != nil:
		return "decode time changes level, no significant slope"
	case (math.Abs(f.B)+3*f.SE)*moved < little:
		return fmt.Sprintf("decode time is constant over positions %.0f–%.0f", f.First, f.Last)
	}
	return "the steps vary too much for a slope"
}

// rate formats the extra time for 1,000 more positions. If no slope was detected, it formats the largest
// slope that could remain undetected.
func rate(f *curves.Fit) string {
	if f.Significant() || f.N < curves.MinSlopePoints || math.Abs(f.B) > 2*f.SE {
		return slope(f) + " per 1,000 positions"
	}
	most := places * (math.Abs(f.B) + 3*f.SE)
	unit, name := slopeUnit(most)
	return fmt.Sprintf("less than %s %s per 1,000 positions", table.Digits(most/unit), name)
}

// tiled reports whether a route computes a matrix product in tiles, with or without splitting its sums. Such
// routes are meant for inputs of many rows.
func tiled(route string) bool {
	return strings.HasPrefix(route, "tile") || route == "split64" || route == "split128"
}

// crossover describes at which prompt lengths matrix products change their routes. Products with the same
// changes are described together.
func crossover(c *curves.Curves) []table.Segment {
	if c.Line == nil {
		return []table.Segment{
			{Rank: 0, Text: "no forecast: routes are known only for prompt lengths that ran"},
		}
	}
	least, most := math.MaxInt, 0
	var spans, any []curves.RouteSpan
	for i := range c.Rows {
		r := c.Rows[i].Routes
		if any == nil && len(r) > 1 && r[0].Route != "" && r[1].Route != "" {
			any = r
		}
		for _, s := range c.Rows[i].Routes {
			if tiled(s.Route) && s.From > c.Line.From {
				least, most = min(least, s.From), max(most, s.From)
				if spans == nil {
					spans = c.Rows[i].Routes
				}
				break
			}
		}
	}
	switch {
	case most == 0 && any != nil:
		return []table.Segment{table.Say(0, "the route first changes at %d tokens: %s", any[1].From,
			routesFrom(any))}
	case most == 0:
		return []table.Segment{table.Say(0, "no operator switches to tiled GEMM up to %d tokens", c.Line.To)}
	case least == most:
		return []table.Segment{
			table.Say(0, "tiled GEMM begins at %d tokens", least),
			table.Say(2, "%s", routesFrom(spans)),
		}
	}
	return []table.Segment{
		table.Say(0, "tiled GEMM begins at %d to %d tokens, depending on the operator", least, most),
	}
}
