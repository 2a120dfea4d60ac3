package html

import (
	"fmt"
	"math"
	"strings"
)

// chart is a drawing with two axes. Lines and dots are SVG paths on a square of 1000 by 1000 units, which the
// page stretches. Texts are HTML, so that they keep their size.
type chart struct {
	Title, Label   string // Label describes the chart for screen readers
	XTitle, YTitle string
	X, Y           []tick
	Grid           string // path of the lines at the ticks
	Lines          []path
	Dots           []path
	Labels         []tick
	Legend         []legend
}

// tick is a text in the drawing. Class is the CSS class that sets its position.
type tick struct{ Class, Text string }

// path is an SVG path. Title is its tooltip.
type path struct{ Class, D, Title string }

// legend explains the dots or lines of a CSS class.
type legend struct{ Class, Text string }

// axis maps values to shares of the length of an axis.
type axis struct {
	from, to float64
	log      bool
}

// at returns the place of a value: 0 is the start of the axis, 1 its end.
func (a axis) at(v float64) float64 {
	from, to := a.from, a.to
	if a.log {
		v, from, to = math.Log10(v), math.Log10(from), math.Log10(to)
	}
	if to == from {
		return 0.5
	}
	return (v - from) / (to - from)
}

// values returns the values of the ticks: powers of ten, or about five multiples of 1, 2 or 5 times a power
// of ten.
func (a axis) values() (list []float64) {
	if a.log {
		from, to := math.Ceil(math.Log10(a.from)-1e-9), math.Floor(math.Log10(a.to)+1e-9)
		stride := math.Ceil((to - from + 1) / 6)
		for e := from; e <= to; e += max(1, stride) {
			list = append(list, math.Pow(10, e))
		}
		return list
	}
	rough := (a.to - a.from) / 5
	if !(rough > 0) || math.IsInf(rough, 0) {
		return []float64{a.from}
	}
	power := math.Pow(10, math.Floor(math.Log10(rough)))
	step := power
	for _, m := range []float64{2, 5, 10} {
		if step < rough {
			step = m * power
		}
	}
	for i := math.Ceil(a.from/step - 1e-9); i*step <= a.to+step*1e-9 && len(list) < 20; i++ {
		list = append(list, i*step)
	}
	return list
}

// around returns an axis that contains all values, with a margin.
func around(log bool, values ...float64) axis {
	a := axis{math.Inf(1), math.Inf(-1), log}
	for _, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) || log && v <= 0 {
			continue
		}
		a.from, a.to = min(a.from, v), max(a.to, v)
	}
	switch {
	case a.from > a.to && log:
		return axis{1, 10, true}
	case a.from > a.to:
		return axis{0, 1, false}
	case log:
		return axis{a.from / 1.6, a.to * 1.6, true}
	case a.from == a.to:
		return axis{a.from - 1, a.to + 1, false}
	}
	room := (a.to - a.from) / 20
	return axis{a.from - room, a.to + room, false}
}

// axes sets the ticks and the grid of a chart.
func (c *chart) axes(p places, x, y axis, xText, yText func(float64) string) {
	var grid strings.Builder
	for _, v := range x.values() {
		if !finite(x.at(v), 0) {
			continue
		}
		c.X = append(c.X, tick{p.left(x.at(v)), xText(v)})
		fmt.Fprintf(&grid, "M%.0f 0V1000", 1000*x.at(v))
	}
	for _, v := range y.values() {
		if !finite(0, y.at(v)) {
			continue
		}
		c.Y = append(c.Y, tick{p.bottom(y.at(v)), yText(v)})
		fmt.Fprintf(&grid, "M0 %.0fH1000", 1000-1000*y.at(v))
	}
	c.Grid = grid.String()
}

// finite reports whether a point can be drawn. If times are near the limit of int64, the coordinates of a
// fitted line can be infinite or NaN.
func finite(x, y float64) bool { return !math.IsNaN(x+y) && !math.IsInf(x+y, 0) }

// dot adds a dot of a class, with a tooltip.
func (c *chart) dot(class, title string, x, y float64) {
	if !finite(x, y) {
		return
	}
	c.Dots = append(c.Dots, path{class, fmt.Sprintf("M%.1f %.1fh0", 1000*x, 1000-1000*y), title})
}

// line adds a line through points, whose coordinates are shares of the axes.
func (c *chart) line(class string, points ...[2]float64) {
	var d strings.Builder
	for i, p := range points {
		if !finite(p[0], p[1]) {
			return
		}
		letter := "L"
		if i == 0 {
			letter = "M"
		}
		fmt.Fprintf(&d, "%s%.1f %.1f", letter, 1000*p[0], 1000-1000*p[1])
	}
	c.Lines = append(c.Lines, path{Class: class, D: d.String()})
}
