package curves

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gpuscope/trace"
	"gpuscope/trace/analyze/curves"
	"gpuscope/trace/table"
	"gpuscope/tui/command"
	"gpuscope/tui/widget"
)

// chart is the chart of one row of the curves.
type chart struct {
	curves *curves.Curves
	row    *curves.CurveRow
	shows  curves.Quantity
	part   AxisRange // drawn part of the axis
	xs, ys []float64 // points of the line of exact values
	lo, hi float64   // range of all values
	higher int       // number of measured times above `hi`; these are not drawn
}

// AxisRange is the drawn part of an axis, including both ends.
type AxisRange struct{ From, To int }

// LeastPart is the minimum length of the drawn part of an axis, in positions or tokens.
const LeastPart = 4

// axisOf returns the scale on which a chart draws a range of positions or of prompt lengths. The scale of
// prompt lengths is logarithmic, because their ratios matter.
func axisOf(c *curves.Curves, p AxisRange) widget.Scale {
	return widget.Scale{Lo: float64(p.From), Hi: float64(p.To), Log: c.Along == trace.AlongTokens}
}

// Part returns the part of the axis to draw for a row: the part that the user chose, else the result of
// curves.OfInterest. If the cursor is outside this part, Part moves or extends it.
func (p *Page) Part(c *curves.Curves, r *curves.CurveRow) AxisRange {
	at := p.Cursor(c)
	chosen, ok := p.Drawn[c.Along]
	if !ok || chosen == (AxisRange{}) {
		from, to := c.OfInterest(r, p.shows[c.Along])
		return AxisRange{min(from, at), max(to, at)}
	}
	xs := axisOf(c, AxisRange{widget.Clamp(chosen.From, c.From, c.To), widget.Clamp(chosen.To, c.From, c.To)})
	share := xs.Share(float64(at))
	return between(c, xs, min(0, share)+max(0, share-1), 1+min(0, share)+max(0, share-1))
}

// between returns the part of the axis from lo to hi, which are fractions of the scale xs. A fraction below 0
// or above 1 is outside xs. If the part would extend beyond an end of the axis, between shifts the part.
func between(c *curves.Curves, xs widget.Scale, lo, hi float64) AxisRange {
	first, last := xs.Share(float64(c.From)), xs.Share(float64(c.To))
	switch {
	case lo < first:
		lo, hi = first, min(last, hi+first-lo)
	case hi > last:
		lo, hi = max(first, lo+last-hi), last
	}
	place := func(share float64) int { return widget.Clamp(int(math.Round(xs.At(share))), c.From, c.To) }
	return AxisRange{place(lo), place(hi)}
}

// widen multiplies the length of the drawn part of the axis by a factor and keeps the cursor at its place on
// the screen. If widening is impossible, widen returns the reason.
func (p *Page) widen(times float64) string {
	c, r := p.Current()
	if c == nil {
		return "no curve yet"
	}
	now := p.Part(c, r)
	xs := axisOf(c, now)
	share := xs.Share(float64(p.Cursor(c)))
	next := between(c, xs, share-times*share, share+times*(1-share))
	switch {
	case times > 1 && next == now:
		return "the whole axis is already shown"
	case times < 1 && next.To-next.From < LeastPart:
		return "the axis cannot be zoomed further"
	}
	p.Drawn[c.Along] = next
	return ""
}

// chartPlaces is the number of places at which exact values are computed for a chart: more than the columns
// of any usual screen.
const chartPlaces = 1024

// emptyChart returns the chart of a row without data.
func (p *Page) emptyChart(c *curves.Curves, r *curves.CurveRow) *chart {
	return &chart{
		curves: c, row: r, shows: p.shows[c.Along], part: p.Part(c, r), lo: math.Inf(1), hi: math.Inf(-1),
	}
}

// filled computes the data of the chart, stores the data in the chart, and returns the chart.
func (d *chart) filled(ctx context.Context) (*chart, error) {
	c, r := d.curves, d.row
	take := func(v float64) { d.lo, d.hi = min(d.lo, v), max(d.hi, v) }
	if d.shows == curves.Time {
		for _, m := range r.Trials {
			d.ys = append(d.ys, float64(m.NS))
		}
		for _, point := range r.Points {
			if len(r.Trials) == 0 { // trials are not comparable: one operator, where a point sums all layers
				d.ys = append(d.ys, point.NS)
			}
		}
		// Do not draw outliers: one delayed step would compress all other points into one line.
		slices.Sort(d.ys)
		if n := len(d.ys); n > 0 && len(r.Trials) == 0 {
			limit := d.ys[3*n/4] + 4*(d.ys[3*n/4]-d.ys[n/4])
			for d.higher = 0; n-d.higher > 1 && d.ys[n-1-d.higher] > limit; {
				d.higher++
			}
			d.ys = d.ys[:n-d.higher]
		}
		for _, v := range d.ys {
			take(v)
		}
		return d, ctx.Err()
	}
	if s := r.State; d.shows == curves.Stored && s != nil && s.Recurrent > 0 {
		take(float64(s.Recurrent))
	}
	xs, last := d.axis(), -1
	for i := range chartPlaces {
		at := int(math.Round(xs.At(float64(i) / (chartPlaces - 1))))
		if at == last {
			continue
		}
		last = at
		if v, ok := c.Exact(r, d.shows, at); ok {
			d.xs, d.ys = append(d.xs, float64(at)), append(d.ys, v)
			take(v)
		}
	}
	return d, ctx.Err()
}

func (d *chart) axis() widget.Scale {
	return axisOf(d.curves, d.part)
}

// flat is the minimum range of the time axis, as a fraction of the largest time. With a smaller range,
// tiny differences would look large.
const flat = 0.04

// values returns the scale of the value axis. The scale starts at 0, except for times that differ little: if
// it started at 0, their slope would be invisible.
func (d *chart) values() widget.Scale {
	if d.lo > d.hi {
		return widget.Scale{Lo: 0, Hi: 1}
	}
	if len(d.row.Trials) > 0 && d.shows == curves.Time {
		// A logarithmic scale shows the ratios between the times of the routes.
		return widget.Scale{Lo: d.lo * 0.8, Hi: d.hi * 1.2, Log: true}
	}
	s := widget.Scale{Lo: 0, Hi: d.hi}
	if d.shows == curves.Time && d.lo > d.hi/2 {
		least := flat * d.hi // times that hardly differ must not look like a slope
		room := max(d.hi-d.lo, least) / 8
		s.Lo, s.Hi = d.lo-room, d.hi+max(0, least-(d.hi-d.lo))/2
	}
	if s.Hi <= s.Lo {
		s.Hi = s.Lo + 1
	}
	return s
}

// place returns the place on the axis that a column stands for in a chart of n columns.
func (d *chart) place(column, n int) int {
	xs := d.axis()
	at := int(math.Round(xs.At(float64(column) / float64(max(2, n)-1))))
	return widget.Clamp(at, d.curves.From, d.curves.To)
}

// drawState draws two sizes: the used part of the KV caches as a line, and the recurrent state as dots. It
// marks the place where the two sizes are equal.
func (d *chart) drawState(plot *widget.Plot) {
	plot.Line(d.xs, d.ys)
	s := d.row.State
	if len(d.ys) > 0 {
		plot.Name(d.ys[len(d.ys)-1], "KV cache in use")
	}
	if s != nil && s.Recurrent > 0 {
		for i := range plot.W {
			plot.Back(plot.Xs.At(float64(i)/float64(max(1, plot.W-1))), float64(s.Recurrent))
		}
		plot.Name(float64(s.Recurrent), "recurrent state "+table.Bytes(s.Recurrent))
	}
	if at, crosses := d.curves.Crossing(s); crosses {
		plot.Mark(float64(at), '×')
	}
}

// drawTimes draws the measured times and the line fitted to them. It returns a description of what is
// drawn.
func (d *chart) drawTimes(plot *widget.Plot, c *curves.Curves) string {
	for _, point := range d.row.Points {
		if len(d.row.Trials) == 0 {
			plot.Dot(float64(point.At), point.NS)
		}
	}
	if f := d.row.Fit; f != nil && !f.Significant() {
		return d.measured() + " · slope not significant"
	} else if f != nil {
		for i := range plot.W {
			x := plot.Xs.At(float64(i) / float64(max(1, plot.W-1)))
			plot.Back(x, f.At(x))
		}
		return d.measured() + " · linear fit"
	}
	for _, m := range d.row.Trials {
		if m.Planned {
			plot.Dot(float64(m.Tokens), float64(m.NS))
		} else {
			plot.Back(float64(m.Tokens), float64(m.NS))
		}
	}
	switch {
	case len(d.row.Trials) > 0:
		return "isolated times: line for the planned route, dots for other routes"
	case len(d.row.Points) > 0:
		return d.measured()
	case c.Along == trace.AlongTokens:
		return "not timed"
	}
	if c.Index.Trace.Device.None() {
		return "not timed: no device"
	}
	if len(c.Index.Phase(trace.Decode).Steps) == 0 {
		return command.Keyed("no decode step has run yet: press {token}")
	}
	return "not timed: run steps at timing level dispatch"
}

// measured returns the text "measured", followed by the number of points above the chart if there are any.
func (d *chart) measured() string {
	if d.higher > 0 {
		return fmt.Sprintf("measured, %d points above the chart", d.higher)
	}
	return "measured"
}
