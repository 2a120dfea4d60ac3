package view

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gpuscope/trace"
	"gpuscope/trace/analyze/curves"
	"gpuscope/tui/command"
	"gpuscope/tui/widget"
)

// chart is a row of the curves as it is drawn.
type chart struct {
	curves *curves.Curves
	row    *curves.CurveRow
	shows  curves.Quantity
	part   AxisRange // of the axis
	xs, ys []float64 // the exact line
	lo, hi float64   // of all values
	higher int       // times over hi, which are not drawn
}

// AxisRange is the part of an axis that is drawn, with both its ends.
type AxisRange struct{ From, To int }

// LeastPart is how many places are drawn at least.
const LeastPart = 4

// axisOf is the axis of a part: lengths of prompts matter by their ratio.
func axisOf(c *curves.Curves, p AxisRange) widget.Scale {
	return widget.Scale{Lo: float64(p.From), Hi: float64(p.To), Log: c.Along == trace.AlongTokens}
}

// Part is the part of the axis that is drawn for a row: what a person chose, else what is of interest. The
// cursor is always on it.
func (p *CurvesPage) Part(c *curves.Curves, r *curves.CurveRow) AxisRange {
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

// between is the part of an axis between two shares of what is drawn of it, moved to where the axis is.
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

// widen draws so many times as much of the axis, with the cursor where it is; it says why it cannot.
func (p *CurvesPage) widen(times float64) string {
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
		return "the whole axis is shown"
	case times < 1 && next.To-next.From < LeastPart:
		return "the axis cannot be zoomed further"
	}
	p.Drawn[c.Along] = next
	return ""
}

// chartPlaces is at how many places of the axis an exact line is looked at: more than a screen has columns.
const chartPlaces = 1024

// emptyChart is the chart of a row with nothing in it yet.
func (p *CurvesPage) emptyChart(c *curves.Curves, r *curves.CurveRow) *chart {
	return &chart{
		curves: c, row: r, shows: p.shows[c.Along], part: p.Part(c, r), lo: math.Inf(1), hi: math.Inf(-1),
	}
}

// filled looks at the row along the axis.
func (d *chart) filled(ctx context.Context) (*chart, error) {
	c, r := d.curves, d.row
	take := func(v float64) { d.lo, d.hi = min(d.lo, v), max(d.hi, v) }
	if d.shows == curves.Time {
		for _, m := range r.Trials {
			d.ys = append(d.ys, float64(m.NS))
		}
		for _, point := range r.Points {
			if len(r.Trials) == 0 { // those are of one operator, these of all layers
				d.ys = append(d.ys, point.NS)
			}
		}
		// A step that was held up would leave nothing of the others.
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

// axis is that of the places: lengths of prompts matter by their ratio.
func (d *chart) axis() widget.Scale {
	return axisOf(d.curves, d.part)
}

// flat is the least part of a time that the axis of times shows, so that differences of nothing look small.
const flat = 0.04

// values is the axis of the values: from 0, but for times, whose slope would not be seen from there.
func (d *chart) values() widget.Scale {
	if d.lo > d.hi {
		return widget.Scale{Lo: 0, Hi: 1}
	}
	if len(d.row.Trials) > 0 && d.shows == curves.Time {
		return widget.Scale{Lo: d.lo * 0.8, Hi: d.hi * 1.2, Log: true} // a crossover is one of ratios
	}
	s := widget.Scale{Lo: 0, Hi: d.hi}
	if d.shows == curves.Time && d.lo > d.hi/2 {
		least := flat * d.hi // times that hardly differ are no slope
		room := max(d.hi-d.lo, least) / 8
		s.Lo, s.Hi = d.lo-room, d.hi+max(0, least-(d.hi-d.lo))/2
	}
	if s.Hi <= s.Lo {
		s.Hi = s.Lo + 1
	}
	return s
}

// place is the place of the axis that a column of n stands for, or one next to them.
func (d *chart) place(column, n int) int {
	xs := d.axis()
	at := int(math.Round(xs.At(float64(column) / float64(max(2, n)-1))))
	return widget.Clamp(at, d.curves.From, d.curves.To)
}

// drawTimes draws what was measured, with the line through it, and says what that is.
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
		return "isolated times on the planned route; · other routes"
	case len(d.row.Points) > 0:
		return d.measured()
	case c.Along == trace.AlongTokens:
		return "not timed"
	}
	if c.Index.Trace.Device.None() {
		return "not timed: no device"
	}
	if len(c.Index.Phase(trace.Decode).Steps) == 0 {
		return command.Keyed("no decode step yet: press {token}")
	}
	return "not timed: needs steps at timing level dispatch"
}

// measured says that times were, and how many are too high for the chart.
func (d *chart) measured() string {
	if d.higher > 0 {
		return fmt.Sprintf("measured, %d above the chart", d.higher)
	}
	return "measured"
}
