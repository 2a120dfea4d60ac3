package html

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/curves"
	"gpuscope/trace/analyze/headline"
	"gpuscope/trace/analyze/rates"
	"gpuscope/trace/analyze/roofline"
	"gpuscope/trace/analyze/why"
	"gpuscope/trace/report"
	"gpuscope/trace/report/phases"
	"gpuscope/trace/report/roofs"
	"gpuscope/trace/report/slopes"
	"gpuscope/trace/table"
)

// growthView shows how the time of a step grows with the position.
type growthView struct {
	Chart *chart // nil if fewer than two steps were measured
	Table *tableView
}

// wasteView shows work that was launched but not needed.
type wasteView struct {
	Lines  []string // one for each phase
	Tables []*tableView
}

// resizeView shows what changed in the steps in which grids changed.
type resizeView struct {
	Line  string
	Steps []resizeStep
}

// resizeStep is a step in which grids changed. Chain explains the largest change of a grid, from the grid
// back to the inputs.
type resizeStep struct {
	Name  string
	Line  string
	Chain []string
	Table *tableView
}

func (p *Page) speed(ctx context.Context, x *analyze.Index, h *headline.Headline) error {
	if h == nil {
		return nil
	}
	profile, err := rates.Of(ctx, x, analyze.Selection{})
	if err != nil {
		return err
	}
	p.Speed = append(phases.Lines(profile), report.TimesLine(x, h.Selection).String(),
		report.VerdictOn(x, h.Selection))
	p.Speed = cleaned(nonEmpty(p.Speed...))
	return nil
}

func (p *Page) roofline(ctx context.Context, x *analyze.Index, _ *headline.Headline) error {
	r, err := roofline.Of(ctx, x)
	if refused := new(roofline.Refusal); errors.As(err, &refused) {
		p.NoRoofline = strings.TrimPrefix(refused.Error(), "roofline: ") + "."
		return nil
	}
	if err != nil {
		return err
	}
	for i := range r.Phases {
		p.Roofline = append(p.Roofline, p.roofs(r, &r.Phases[i]))
	}
	return nil
}

// roofs draws the roofline of a phase.
func (p *Page) roofs(r *roofline.Roofline, phase *roofline.Phase) *chart {
	c := &chart{
		Title:  fmt.Sprintf("%s, %s", phase.Phase, table.Plural(phase.Steps, "timed step")),
		XTitle: "FLOP/byte (from the plans)", YTitle: "FLOP/s (measured)",
	}
	var xs, ys []float64
	total, floor := 0.0, 0
	for i := range phase.Points {
		q := &phase.Points[i]
		if total += q.NS; q.AtFloor {
			floor++
		} else if in, ok := q.Intensity(); ok && in > 0 && q.FlopsPerS > 0 {
			xs, ys = append(xs, in), append(ys, q.FlopsPerS)
		}
	}
	ridge := r.Ridge(phase)
	ax := around(true, append(xs, ridge, 4*ridge)...)
	ay := around(true, append(ys, r.Roof(phase, ax.to), r.Roof(phase, max(ax.from, 0)))...)
	c.axes(p.places, ax, ay, power, power)
	roof := []float64{ax.from, ax.to}
	if ridge > ax.from && ridge < ax.to {
		roof = []float64{ax.from, ridge, ax.to}
	}
	var points [][2]float64
	for _, v := range roof {
		points = append(points, [2]float64{ax.at(v), ay.at(r.Roof(phase, v))})
	}
	c.line("roof", points...)
	c.Legend = append(c.Legend, legend{"roof", roofs.Ceilings(r, phase)})
	var labels [][2]float64
	for i := range phase.Points {
		q := &phase.Points[i]
		in, ok := q.Intensity()
		if q.AtFloor || !ok || in <= 0 || q.FlopsPerS <= 0 {
			continue
		}
		share := q.NS / total
		title := fmt.Sprintf("%s: %s FLOP/byte, %s, %s, %s, %.0f %% of the time", clean(q.Kernel),
			roofs.Intensity(in), table.Scaled(q.FlopsPerS, "FLOP/s"), table.Scaled(q.BytesPerS, "B/s"),
			bound(q), 100*share)
		x, y := ax.at(in), ay.at(q.FlopsPerS)
		c.dot("dot "+size(share), title, x, y)
		if room := func(l [2]float64) bool { // whether a text at (x, y) leaves the text at l readable
			return math.Abs(l[1]-y) > 0.08 || math.Abs(l[0]-x) > 0.5
		}; len(labels) < 4 && !slices.ContainsFunc(labels, func(l [2]float64) bool { return !room(l) }) {
			c.Labels = append(c.Labels, tick{labelClass(p.places, x, y), clean(q.Kernel)})
			labels = append(labels, [2]float64{x, y})
		}
	}
	c.Legend = append(c.Legend, legend{"dot", "a kernel; larger dots take more of the time"})
	c.Label = fmt.Sprintf("Roofline of %s: %s drawn, %s", phase.Phase, table.Plural(len(c.Dots), "kernel"),
		roofs.Ceilings(r, phase))
	if n := len(phase.Points) - len(c.Dots); n > 0 {
		c.Legend = append(c.Legend, legend{"", fmt.Sprintf(
			"%s not drawn: they compute nothing, or take no longer than an empty timed pass",
			table.Plural(n, "kernel"))})
	}
	return c
}

// labelClass returns the classes of a text beside a dot. In the right half of a drawing the text is to the
// left of the dot.
func labelClass(p places, x, y float64) string {
	side := "right"
	if x > 0.5 {
		side = "left"
	}
	return side + " " + p.left(x) + " " + p.bottom(y)
}

// bound says which ceiling limits a kernel, and how close the kernel comes to it.
func bound(q *roofline.Point) string {
	return analyze.Bound{Kind: q.Bound, Share: q.Share}.String()
}

// power formats a power of ten, such as "0.01", "10" or "10 G".
func power(v float64) string {
	if v < 1000 {
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	return strings.NewReplacer(".00 ", " ", ".0 ", " ").Replace(table.Scaled(v, ""))
}

// size returns the CSS class that sets the size of a dot.
func size(share float64) string {
	switch {
	case share >= 0.2:
		return "large"
	case share >= 0.05:
		return "medium"
	}
	return "small"
}

func (p *Page) cost(ctx context.Context, x *analyze.Index, _ *headline.Headline) (err error) {
	p.Cost, err = p.view(ctx, x, "cost", analyze.Options{})
	return err
}

func (p *Page) growth(ctx context.Context, x *analyze.Index, _ *headline.Headline) error {
	c, err := curves.Of(ctx, x, trace.AlongPosition, nil)
	if err != nil {
		return err
	}
	kind, err := report.TableNamed("slope")
	if err != nil {
		return err
	}
	if p.Growth.Table, err = p.viewOf(ctx, slopes.Table(c), kind.Doc); err != nil {
		return err
	}
	if r := &c.Rows[0]; len(r.Points) > 1 {
		p.Growth.Chart = p.curve(x, c, r)
	}
	return nil
}

// mostDots is the maximum number of dots of a chart. It bounds the size of the page.
const mostDots = 2000

// curve draws the time of the whole step over the position, and the fitted line.
func (p *Page) curve(x *analyze.Index, c *curves.Curves, r *curves.CurveRow) *chart {
	ch := &chart{XTitle: "position", YTitle: c.Of + " of a step (measured)"}
	var xs, ys []float64
	for _, q := range r.Points {
		xs, ys = append(xs, float64(q.At)), append(ys, q.NS)
	}
	if r.Fit != nil {
		ys = append(ys, r.Fit.At(r.Fit.First), r.Fit.At(r.Fit.Last))
	}
	ax, ay := around(false, xs...), around(false, ys...)
	ch.axes(p.places, ax, ay, func(v float64) string { return fmt.Sprintf("%.0f", v) },
		slopes.AxisText(curves.Time, ay.from, ay.to))
	stride := (len(r.Points) + mostDots - 1) / mostDots
	for i := 0; i < len(r.Points); i += max(1, stride) {
		q := r.Points[i]
		class := "dot small"
		if r.Fit != nil && slices.Contains(r.Fit.Out, i) {
			class = "out small"
		}
		ch.dot(class, fmt.Sprintf("s%d at position %d: %s", x.Trace.Steps[q.Step].Index, q.At,
			slopes.QuantityText(curves.Time, q.NS)), ax.at(float64(q.At)), ay.at(q.NS))
	}
	ch.Legend = append(ch.Legend, legend{"dot", "a step"})
	if f := r.Fit; f != nil {
		at := func(x, ns float64) [2]float64 { return [2]float64{ax.at(x), ay.at(ns)} }
		line := [][2]float64{at(f.First, f.At(f.First))}
		if l := f.Level; l != nil {
			line = append(line, at(l.At, f.At(l.At)-l.NS), at(l.At, f.At(l.At)))
		}
		ch.line("fit", append(line, at(f.Last, f.At(f.Last)))...)
		ch.Legend = append(ch.Legend, legend{"fit", "fitted line"})
		if len(f.Out) > 0 {
			ch.Legend = append(ch.Legend, legend{"out", "outlier, excluded from the fit"})
		}
	}
	if stride > 1 {
		ch.Legend = append(ch.Legend, legend{"", fmt.Sprintf("every %dth step is drawn", stride)})
	}
	ch.Label = fmt.Sprintf("%s of %s against the position", c.Of, table.Plural(len(r.Points), "step"))
	return ch
}

func (p *Page) waste(ctx context.Context, x *analyze.Index, _ *headline.Headline) error {
	if x.Trace.Engine != "" {
		p.Waste.Lines = []string{"The profile of another engine has only the grids that were launched, so waste is " +
			"not known."}
		return nil
	}
	for _, phase := range trace.Phases {
		selection := x.Phase(phase)
		if len(selection.Steps) == 0 {
			continue
		}
		step := selection.Last()
		s := &x.Trace.Steps[step]
		name := fmt.Sprintf("%s, s%d", phase, s.Index)
		p.Waste.Lines = append(p.Waste.Lines, name+": "+report.WasteLine(x.Wasted(s)))
		t, err := report.Dispatches(ctx, x, analyze.Options{Selection: x.Step(step)})
		if err != nil {
			return err
		}
		v, err := p.wasted(ctx, t)
		if err != nil {
			return err
		}
		if v != nil {
			v.Name, v.Doc = "waste of "+name, "rows with workgroups or lanes without work"
			v.Open = phase != trace.Prefill
			p.Waste.Tables = append(p.Waste.Tables, v)
		}
	}
	return nil
}

// wasted returns the rows of a step that have waste, with the columns about waste. It returns nil if no row
// has waste.
func (p *Page) wasted(ctx context.Context, t *report.DispatchTable) (*tableView, error) {
	var columns []table.Column
	for _, name := range []string{"op", "kernel", "grid", "needed", "over_wg", "fold_wg", "tail_lanes"} {
		if at := t.Column(name); at >= 0 {
			c := t.Columns[at]
			c.Width, c.Tree = 80, false
			columns = append(columns, c)
		}
	}
	var rows []int
	for i := range t.Grouped {
		if t.Single(i) && !t.Grouped[i].Waste.None() {
			rows = append(rows, i)
		}
	}
	if rows == nil {
		return nil, nil
	}
	lanes := func(row int) int64 { return t.Grouped[row].Waste.Tail }
	slices.SortStableFunc(rows, func(a, b int) int {
		if d := t.Grouped[b].Waste.Groups() - t.Grouped[a].Waste.Groups(); d != 0 {
			return int(max(-1, min(1, d)))
		}
		return int(max(-1, min(1, lanes(b)-lanes(a))))
	})
	for i := range columns {
		of := columns[i].Of
		columns[i].Of = func(row int) table.Cell { return of(rows[row]) }
		if columns[i].Name == "op" { // without headings a row needs its full name
			columns[i].Of = func(row int) table.Cell { return table.Text(t.Called(rows[row])) }
		}
	}
	key := func(i int) string { return t.Grouped[rows[i]].Key }
	return p.viewOf(ctx, table.New("waste", columns, table.Flat(len(rows), key)), "")
}

// mostResizes is the number of steps with changed grids that the page shows in detail.
const mostResizes = 3

func (p *Page) resize(ctx context.Context, x *analyze.Index, h *headline.Headline) error {
	if h == nil || x.Trace.Engine != "" {
		p.Resize.Line = "No shapes were recorded."
		return nil
	}
	p.Resize.Line = strings.TrimPrefix(x.Regrids(analyze.Selection{Steps: x.EveryStep()}), "selection: ")
	steps := slices.Clone(x.RegriddedSteps)
	if n := len(steps); n > mostResizes {
		first := slices.IndexFunc(steps, func(i int) bool { return x.Trace.Steps[i].Phase == trace.Decode })
		first = max(0, min(first, n-mostResizes))
		steps = append(steps[first:first+1:first+1], steps[n-mostResizes+1:]...)
	}
	for _, step := range slices.Compact(steps) {
		s := &x.Trace.Steps[step]
		v, err := p.view(ctx, x, "resize", analyze.Options{Selection: x.Step(step)})
		if err != nil {
			return err
		}
		r := resizeStep{Name: fmt.Sprintf("s%d, %s", s.Index, s.Phase), Table: v}
		if v != nil {
			v.Name = fmt.Sprintf("resize of s%d", s.Index)
			if len(v.Lines) > 0 {
				r.Line, v.Lines = v.Lines[0], v.Lines[1:]
			}
		}
		if id, ok := largestChange(x.Trace, s); ok {
			r.Chain = cleaned(report.WhyLines(why.Of(x, step, id), ""))
		}
		p.Resize.Steps = append(p.Resize.Steps, r)
	}
	return nil
}

// largestChange returns the dispatch whose number of workgroups changed most in a step. If no dispatch ran
// both before and after the change, it returns one that is new.
func largestChange(t *trace.Trace, s *trace.Step) (id trace.DispatchID, ok bool) {
	most := int64(-1)
	for i := range s.Resize.Passes {
		hooks := s.Resize.Passes[i].Hooks
		for j := range hooks {
			for _, c := range hooks[j].Plans {
				if c.To == nil {
					continue
				}
				to, by := &t.Plans[*c.To], int64(0)
				if c.From != nil {
					by = analyze.Product(to.Workgroups) - analyze.Product(t.Plans[*c.From].Workgroups)
				}
				if by = int64(math.Abs(float64(by))); by > most {
					id, most, ok = to.Dispatch, by, true
				}
			}
		}
	}
	return id, ok
}

func (p *Page) tables(ctx context.Context, x *analyze.Index, h *headline.Headline) error {
	main := analyze.Selection{}
	if h != nil {
		main = h.Selection
	}
	for _, l := range tableList {
		kind, err := report.TableNamed(l.name)
		if err != nil {
			return err
		}
		v, err := p.view(ctx, x, l.name, analyze.Options{Selection: selectionFor(&kind, main)})
		if err != nil {
			return err
		}
		if v == nil || len(v.Columns) == 0 {
			continue
		}
		v.Open = l.open
		p.Tables = append(p.Tables, v)
		prefill := x.Phase(trace.Prefill)
		if l.name != "dispatches" || len(prefill.Steps) == 0 || main.Name == prefill.Name {
			continue
		}
		if v, err = p.view(ctx, x, l.name, analyze.Options{Selection: prefill}); err != nil {
			return err
		}
		if v != nil {
			v.Name = "dispatches of prefill"
			p.Tables = append(p.Tables, v)
		}
	}
	return nil
}
