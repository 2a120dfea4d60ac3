// Package curves is the view Curves: charts over the position or the number of prompt tokens.
package curves

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"

	"gpuscope/internal/printable"
	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/trace/analyze/curves"
	"gpuscope/trace/report"
	"gpuscope/trace/report/slopes"
	"gpuscope/trace/table"
	"gpuscope/tui/command"
	"gpuscope/tui/view"
	"gpuscope/tui/view/roof"
	"gpuscope/tui/widget"
)

// Page is view 5. It shows how times, grids and routes depend on the position of decode steps, or on
// the length of a prompt. The list holds the whole step and its operators, and the chart above the list shows
// the selected row. After the user has switched the axis, the page shows the previous axis until the curves
// of the new axis are ready.
type Page struct {
	view.ListPage
	host  view.Host
	Along string // axis that the user chose
	shows map[string]curves.Quantity
	at    map[string]int       // cursor of each axis; by default at the shown step
	Drawn map[string]AxisRange // part of each axis that the user chose to draw
	chart widget.Task[chartKey, *chart]
	W     int // width of the chart as last drawn, in columns
}

// New returns the view Curves.
func New(h view.Host) *Page {
	p := &Page{
		ListPage: view.ListOf("slope"), host: h, Along: trace.AlongPosition, at: map[string]int{},
		Drawn: map[string]AxisRange{},
		shows: map[string]curves.Quantity{
			trace.AlongPosition: curves.Time,
			trace.AlongTokens:   curves.Grid, // grids are known at all lengths, times at few
		},
	}
	p.Rows.GiveUp = []string{"times", "last_us", "n", "error_us"}
	return p
}

// Takes returns WholeRun: curves cover all steps, not only the selected steps.
func (p *Page) Takes() report.Takes { return report.WholeRun }

// curvesKey identifies the table of the curves; chartKey identifies a chart.
type (
	curvesKey struct {
		version int
		along   string
		against view.Base
	}
	chartKey struct {
		listing int
		row     string
		shows   curves.Quantity
		part    AxisRange
	}
)

// curvesLook is the part of the page's state that undo restores.
type curvesLook struct {
	along             string
	positions, tokens axisLook
}

type axisLook struct {
	shows curves.Quantity
	drawn AxisRange
}

// Look returns what undo restores: the axis, the quantities and the drawn parts of the axes.
func (p *Page) Look() any {
	of := func(along string) axisLook { return axisLook{p.shows[along], p.Drawn[along]} }
	return curvesLook{p.Along, of(trace.AlongPosition), of(trace.AlongTokens)}
}

func (p *Page) Restore(s any) {
	l := s.(curvesLook)
	p.Along = l.along
	for along, of := range map[string]axisLook{
		trace.AlongPosition: l.positions, trace.AlongTokens: l.tokens,
	} {
		p.shows[along], p.Drawn[along] = of.shows, of.drawn
	}
}

func (p *Page) Load(j *widget.Jobs, s view.Snapshot, _ int) {
	if s.Trace == nil || s.Index == nil {
		p.Rows.Unload(j)
		return
	}
	along := p.Along
	against := s.Against
	if s.Chosen == view.NoBase { // the default baseline is a single step, which gives no line
		against = nil
	}
	key := curvesKey{curvesVersion(s), along, s.Chosen}
	p.Rows.Load(j, key, s, s.Running, func(ctx context.Context) (*table.Table, error) {
		c, err := curves.Of(ctx, s.Index, along, against)
		if err != nil {
			return nil, err
		}
		return slopes.Table(c), nil
	})
	c, r := p.Current()
	if c == nil {
		p.chart.Clear(j)
		return
	}
	d := p.emptyChart(c, r)
	p.chart.Want(j, chartKey{p.Rows.Listings, r.Name, d.shows, d.part}, d.filled, nil)
}

// curvesVersion returns the version of the data for which to compute curves. While a model runs, this version
// changes only after several steps, because curves cover all steps and take long to compute.
func curvesVersion(s view.Snapshot) int {
	if !s.State.Running {
		return s.Version
	}
	n := len(s.Trace.Steps)
	return -1 - n/max(4, 1<<bits.Len(uint(n))/16)
}

// Current returns the curves and the selected row, or nil if there are none.
func (p *Page) Current() (*curves.Curves, *curves.CurveRow) {
	if p.Rows.Table == nil {
		return nil, nil
	}
	c, _ := p.Rows.Table.From.(*curves.Curves)
	r := p.Rows.Current()
	if c == nil || r < 0 {
		return nil, nil
	}
	return c, &c.Rows[r]
}

// nextAxis switches to the other axis; redraw switches to the next quantity.
func (p *Page) nextAxis() {
	p.Along = map[string]string{
		trace.AlongPosition: trace.AlongTokens, trace.AlongTokens: trace.AlongPosition,
	}[p.Along]
}

func (p *Page) redraw() {
	if c, _ := p.Current(); c != nil {
		all := c.Quantities()
		next := (slices.Index(all, p.shows[p.Along]) + 1) % len(all)
		if next == 0 {
			p.host.Push(&roof.Row, roof.New(p.host))
		}
		p.shows[p.Along] = all[next]
	}
}

func (p *Page) Title(w int) []table.Segment {
	t := p.Rows.Table
	if t == nil || len(t.Title) == 0 {
		return []table.Segment{{Rank: 0, Text: "Curves"}}
	}
	return slices.Concat(t.Title[0].Segments, p.Rows.Own(w))
}

// Cursor returns the position of the cursor on the axis: the position that the user chose, else that of the
// shown step.
func (p *Page) Cursor(c *curves.Curves) int {
	at, chosen := p.at[c.Along]
	if s := p.ListPage.Snapshot(); !chosen && s.Step >= 0 && s.Step < len(s.Trace.Steps) {
		step := &s.Trace.Steps[s.Step]
		at = step.Position
		if c.Along == trace.AlongTokens {
			at = len(step.Tokens)
		}
	}
	return widget.Clamp(at, c.From, c.To)
}

// Move moves up and down the list, and left and right along the axis by one column of the chart.
func (p *Page) Move(m widget.Motion) {
	by := map[widget.Motion]int{widget.Left: -1, widget.Right: 1}[m]
	c, r := p.Current()
	if by == 0 || c == nil {
		p.Rows.Move(m)
		return
	}
	d, at := p.emptyChart(c, r), p.Cursor(c)
	col, _ := widget.Spot(d.axis().Share(float64(at)), max(2, p.W))
	next := d.place(col+by, p.W)
	if next == at || widget.Toward(next-at) != by {
		next = at + by
	}
	p.at[c.Along] = widget.Clamp(next, c.From, c.To)
}

// Jump moves the cursor to the next change of the selected row's grid, or to the previous change if `by` is
// negative. It returns false if there is no such change.
func (p *Page) Jump(by int) bool {
	c, r := p.Current()
	if c == nil {
		return false
	}
	at, best := p.Cursor(c), -1
	for _, change := range c.ChangesOf(r) {
		var next int
		switch {
		case by > 0 && change.Until > at:
			next = max(change.At, at+1)
		case by < 0 && change.At < at:
			next = min(change.Until, at-1)
		default:
			continue
		}
		if best < 0 || by > 0 && next < best || by < 0 && next > best {
			best = next
		}
	}
	if best >= 0 {
		p.at[c.Along] = best
	}
	return best >= 0
}

func (p *Page) Render(t *widget.Theme, g widget.Glyphs, w, h int, focused bool) []string {
	c, r := p.Current()
	p.Rows.Line = 0
	if c == nil || c.To <= c.From {
		return p.Draw(t, w, h, focused,
			"No recorded step can be shown on this axis, and the trace has no forecast.")
	}
	var lines []string
	if rows := widget.Clamp(h/2-3, 3, 16); h >= 10 {
		lines = p.drawChart(t, g, c, r, w, rows)
	}
	p.Rows.Line = len(lines)
	return append(lines, p.Draw(t, w, h-len(lines), focused, "The graph has no dispatches.")...)
}

// PointAt moves the cursor to the clicked place of the chart.
func (p *Page) PointAt(x, y, _ int) bool {
	c, r := p.Current()
	if c == nil || y >= p.Rows.Line {
		return false
	}
	if col := x - widget.Axis - 1; y > 0 && col >= 0 && col < p.W {
		p.at[c.Along] = p.emptyChart(c, r).place(col, p.W)
	}
	return true
}

// drawChart draws the chart of a row below a heading that names the quantity and explains the signs.
func (p *Page) drawChart(t *widget.Theme, g widget.Glyphs, c *curves.Curves, r *curves.CurveRow,
	w, h int,
) []string {
	p.W = w - widget.Axis - 2
	d := p.chart.Value
	if d == nil || d.row != r || d.shows != p.shows[c.Along] {
		d = p.emptyChart(c, r)
	}
	at := p.Cursor(c)
	xs, ys := d.axis(), d.values()
	plot := widget.NewPlot(g, p.W, h, xs, ys)
	label := slopes.AxisText(d.shows, ys.Lo, ys.Hi)
	plot.Label = func(y float64) string {
		if d.lo > d.hi {
			return "" // the chart has no values to label
		}
		return strings.TrimSuffix(label(y), " wg")
	}
	plot.Position = func(x float64) string { return widget.Count(int(math.Round(x))) }
	if d.part.To < c.To {
		plot.Beyond = " of " + widget.Count(c.To)
	}
	if col, in := widget.Spot(xs.Share(float64(at)), p.W); in { // the chart may be older than the cursor
		plot.Column, plot.At = col, float64(at)
	}
	said := []table.Segment{{Rank: 2, Text: "exact values, computed from the plans"}}
	switch d.shows {
	case curves.Time:
		said[0].Text = d.drawTimes(plot, c)
	case curves.Stored:
		said = []table.Segment{slopes.CrossingPart(c, r)}
		d.drawState(plot)
	default:
		plot.Line(d.xs, d.ys)
	}
	routes := false
	for _, change := range c.ChangesOf(r) {
		if change.Until-change.At > p.W || change.Until > change.At {
			continue // do not mark a range with a change at every place
		}
		sign := '·'
		if change.Rerouted() {
			sign, routes = '│', true
		}
		plot.Mark(float64(change.At), sign)
	}
	what := map[string]string{
		trace.AlongPosition: "position of a decode step", trace.AlongTokens: "tokens of a prompt",
	}
	parts := append([]table.Segment{{
		Rank: 0, Text: fmt.Sprintf("%s: %s over %s", r.Name, d.shows, what[c.Along]),
		Short: fmt.Sprintf("%s: %s", r.Name, d.shows),
	}}, append(said, table.Segment{Rank: 0, Text: d.atCursor(at)})...)
	if d.shows == curves.Time && r.Dispatches == nil {
		parts = append(parts, table.Segment{Rank: 1, Text: c.Of})
	}
	if routes {
		parts = append(parts, table.Segment{Rank: 4, Text: "│ change of route"})
	}
	head := t.Put(widget.Strong, " "+printable.Clean(table.Title(parts...).Fit(w-1)))
	return append([]string{head}, plot.Render(t)...)
}

// atCursor returns a text with the place of the cursor and the row's value at this place: "at 57: 1.20 ms".
func (d *chart) atCursor(at int) string {
	r := d.row
	if d.shows == curves.Stored {
		return fmt.Sprintf("at %s: %s", widget.Count(at), slopes.StateAt(d.curves, r, at))
	}
	if d.shows != curves.Time {
		if v, ok := d.curves.Exact(r, d.shows, at); ok {
			return fmt.Sprintf("at %s: %s", widget.Count(at), slopes.QuantityText(d.shows, v))
		}
		return fmt.Sprintf("at %s: not launched", widget.Count(at))
	}
	for _, m := range r.Trials {
		if m.Tokens == at && m.Planned {
			return fmt.Sprintf("at %s: %s", widget.Count(at), slopes.QuantityText(d.shows, float64(m.NS)))
		}
	}
	for _, point := range r.Points {
		if point.At == at && len(r.Trials) == 0 {
			said := slopes.QuantityText(d.shows, point.NS)
			if r.Dispatches == nil && d.curves.Level == trace.TimingDispatch {
				said = "Σ " + said // a sum of isolated times, not the time of a step
			}
			return fmt.Sprintf("at %s: %s", widget.Count(at), said)
		}
	}
	return fmt.Sprintf("at %s: –", widget.Count(at))
}

// Detail returns the values of the row at the cursor, and where they change.
func (p *Page) Detail() *view.Detail {
	c, r := p.Current()
	if c == nil {
		return &view.Detail{}
	}
	at := p.Cursor(c)
	of := fmt.Sprintf("%s %s %d", c.Along, r.Name, at)
	lines := func(ctx context.Context) ([]string, error) { return slopes.Lines(c, r, at), ctx.Err() }
	return &view.Detail{Of: of, Title: r.Name, Lines: lines}
}

// why returns the text that explains the grid of the selected row's first dispatch in the shown step.
func (p *Page) why() (view.Text, bool) {
	_, r := p.Current()
	switch {
	case r == nil || p.ListPage.Snapshot().Step < 0:
		return view.Text{}, false
	case len(r.Dispatches) == 0:
		none := r.Name + " has no grid to explain; select an operator"
		return view.Text{None: none}, false
	}
	return view.WhyDispatch(p.ListPage.Snapshot(), r.Dispatches[0], view.FirstOf(len(r.Dispatches))), true
}

// timed returns the operator of the selected row and the prompt lengths for which to time the operator. They
// include the lengths on both sides of each change of route and, if the axis is the prompt length, the length
// at the cursor. If the row has no operator, `why` is the reason.
func (p *Page) timed() (op trace.OpID, lengths []int, why string) {
	c, r := p.Current()
	if c == nil || len(r.Dispatches) == 0 {
		return 0, nil, "select an operator: the row of the whole step cannot be timed in isolation"
	}
	if c.Along == trace.AlongTokens {
		lengths = append(lengths, p.Cursor(c))
	}
	lengths = curves.Crossings(p.ListPage.Snapshot().Index, r.Dispatches[0], lengths...)
	return p.ListPage.Snapshot().Trace.Graph.Dispatches[r.Dispatches[0]].Op, lengths, ""
}

// cannotTime returns the reason that no operator can be timed, or "" if one can.
func (p *Page) cannotTime() string {
	_, lengths, why := p.timed()
	if why == "" && len(lengths) == 0 {
		why = "the trace has no forecast, so the numbers of tokens to time are unknown"
	}
	return why
}

// showRoutes switches to the chart that compares routes: the time as a function of prompt length.
func (p *Page) showRoutes() {
	p.Along, p.shows[trace.AlongTokens] = trace.AlongTokens, curves.Time
}

// timeOperator times the selected operator and shows the times.
func (p *Page) timeOperator() {
	op, lengths, _ := p.timed()
	p.showRoutes()
	p.host.Do(session.Command{Kind: session.TimeOp, Op: &op, Lengths: lengths})
}

func (p *Page) Actions() []command.Action {
	return append(p.ListPage.Actions(), []command.Action{
		{Name: "why", Run: func() {
			t, explains := p.why()
			view.Explain(p.host, &p.Rows, t, explains)
		}},
		{Name: "axis", Run: p.nextAxis},
		{Name: "time", Off: p.cannotTime, Run: p.timeOperator},
		{Name: "draw", Run: p.redraw},
		{Name: "wider", Run: func() { p.drawMore(4) }},
		{Name: "closer", Run: func() { p.drawMore(0.25) }},
	}...)
}

func (p *Page) Detailed() bool { return true }

// Turn moves the cursor to the next change of the row's grid, or to the previous change if `by` is negative.
func (p *Page) Turn(by int) bool {
	if !p.Jump(by) {
		p.host.Remark("this row has no further grid change in that direction")
	}
	return true
}

// drawMore multiplies the length of the drawn part of the axis by a factor, or tells the user why this is
// impossible.
func (p *Page) drawMore(times float64) {
	if why := p.widen(times); why != "" {
		p.host.Remark(why)
	}
}
