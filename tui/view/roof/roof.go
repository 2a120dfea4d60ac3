// Package roof is the screen of the roofline: the kernels of a run as points under the ceilings that were
// measured on the device.
package roof

import (
	"context"
	"fmt"
	"math"

	"gpuscope/internal/printable"
	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/report"
	"gpuscope/trace/report/roofs"
	"gpuscope/trace/table"
	"gpuscope/tui/command"
	"gpuscope/tui/view"
	"gpuscope/tui/widget"
)

// Row describes the screen of the roofline, which Curves opens as its last chart.
var Row = view.Row{
	Name: "Roofline", Needs: command.Steps,
	Doc: "Kernels as points under the measured ceilings of the device: FLOP/s over FLOP/byte.",
	New: func(h view.Host, _ *widget.Log) view.View { return New(h) },
}

// Page is the screen of the roofline. The list holds a row for each kernel and phase; the chart above the
// list holds a point for each row.
type Page struct {
	view.ListPage
	host view.Host
}

// New returns the screen of the roofline.
func New(h view.Host) *Page {
	t, err := report.TableNamed("roofline")
	if err != nil {
		panic(err) // package roofs registers the table
	}
	return &Page{ListPage: view.ListPage{From: t}, host: h}
}

// Load requests the roofline of the whole run.
func (p *Page) Load(j *widget.Jobs, s view.Snapshot, _ int) {
	if s.Trace == nil || s.Index == nil {
		p.Rows.Unload(j)
		return
	}
	p.Rows.Load(j, s.Version, s, s.Running, func(ctx context.Context) (*table.Table, error) {
		return p.From.Of(ctx, s.Index, analyze.Options{})
	})
}

// Actions returns the commands of a list, and the command `draw`, which goes back to the curves.
func (p *Page) Actions() []command.Action {
	return append(p.ListPage.Actions(), command.Action{Name: "draw", Run: func() { p.host.Pop() }})
}

// Title explains the chart.
func (p *Page) Title(w int) []table.Segment {
	if r, _ := p.roofs(); r == nil || r.Refused != "" {
		return []table.Segment{{Text: "kernels under the ceilings of the device"}}
	}
	return append([]table.Segment{
		{Rank: 0, Text: "FLOP/s over FLOP/byte, both logarithmic", Short: "FLOP/s over FLOP/byte"},
		{Rank: 1, Text: "A–Z prefill, a–z decode"},
		{Rank: 2, Text: "(a) at least 10 % of the time"},
	}, p.Rows.Own(w)...)
}

// roofs returns the roofline and the selected row, or nil if there are none.
func (p *Page) roofs() (*roofs.Roofs, *roofs.Row) {
	if p.Rows.Table == nil {
		return nil, nil
	}
	r, _ := p.Rows.Table.From.(*roofs.Roofs)
	row := p.Rows.Current()
	if r == nil || row < 0 {
		return r, nil
	}
	return r, &r.Rows[row]
}

// Render draws the chart above the list.
func (p *Page) Render(t *widget.Theme, g widget.Glyphs, w, h int, focused bool) []string {
	r, at := p.roofs()
	p.Rows.Line = 0
	if r != nil && r.Refused != "" {
		lines := []string{""}
		for _, l := range widget.WrapText(printable.Clean(r.Refused)+".", w-4) {
			lines = append(lines, t.Put(widget.Warn, "  "+l))
		}
		return lines
	}
	var lines []string
	if rows := widget.Clamp(h*3/5, 4, 24); r != nil && h >= 12 {
		lines = p.chart(t, g, r, at, w, rows)
	}
	p.Rows.Line = len(lines)
	none := "Computing …"
	if p.Rows.Table != nil {
		none = command.Keyed("No row matches the filter. Press {back out} to clear the filter.")
	}
	return append(lines, p.Rows.Render(t, w, h-len(lines), focused, none)...)
}

// milli is the factor by which the chart multiplies intensities in FLOP/byte: a logarithmic scale of a plot
// begins at 1, and intensities may be less than 1.
const milli = 1e6

// chart draws the points of all kernels and the ceilings of each phase.
func (p *Page) chart(t *widget.Theme, g widget.Glyphs, r *roofs.Roofs, at *roofs.Row, w, h int) []string {
	xs, ys := scales(r)
	plot := widget.NewPlot(g, max(2, w-widget.Axis-2), h, xs, ys)
	plot.Label = func(y float64) string { return table.Scaled(y, "") }
	plot.Position = func(x float64) string { return roofs.Intensity(x/milli) + " FLOP/byte" }
	for i := range r.Phases {
		phase := &r.Phases[i]
		draw := plot.Dot
		if phase.Phase == trace.Prefill && len(r.Phases) > 1 {
			draw = plot.Back
		}
		const fine = 4 // points per column, so that a steep line has no gaps
		for c := range fine * plot.W {
			x := xs.At(float64(c) / float64(fine*plot.W-1))
			draw(x, r.Roof(phase, x/milli))
		}
	}
	if at != nil {
		if x, ok := at.Intensity(); ok && x > 0 {
			if col, in := widget.Spot(xs.Share(x*milli), plot.W); in {
				plot.Column, plot.At = col, x*milli
			}
		}
		p.join(plot, r, at)
	}
	for i := len(r.Rows) - 1; i >= 0; i-- { // draw the longest kernels last, over the others
		put(plot, &r.Rows[i])
	}
	if at != nil {
		put(plot, at)
	}
	head := " "
	if at != nil {
		head += describe(r, at)
	}
	return append([]string{t.Put(widget.Strong, widget.Cut(printable.Clean(head), w-1))}, plot.Render(t)...)
}

// put draws the sign of a kernel, unless the kernel has no rate or no FLOPs.
func put(plot *widget.Plot, row *roofs.Row) {
	x, ok := row.Intensity()
	if !ok || x <= 0 || row.FlopsPerS <= 0 {
		return
	}
	sign := row.Sign
	if row.Large() {
		sign = "(" + sign + ")"
	}
	plot.Put(x*milli, row.FlopsPerS, sign)
}

// join draws a line from the selected kernel to the same kernel in the other phase, if both have points.
func (p *Page) join(plot *widget.Plot, r *roofs.Roofs, at *roofs.Row) {
	x0, ok := at.Intensity()
	for i := range r.Rows {
		other := &r.Rows[i]
		x1, has := other.Intensity()
		if other == at || other.Kernel != at.Kernel || !ok || !has ||
			min(x0, x1, at.FlopsPerS, other.FlopsPerS) <= 0 {
			continue
		}
		for c := range 2 * plot.W {
			f := float64(c) / float64(2*plot.W-1)
			y := at.FlopsPerS * math.Pow(other.FlopsPerS/at.FlopsPerS, f)
			plot.Back(milli*x0*math.Pow(x1/x0, f), y)
		}
	}
}

// scales returns the axes, which include all points and the ridge of each phase with room on both sides.
func scales(r *roofs.Roofs) (xs, ys widget.Scale) {
	xs = widget.Scale{Lo: math.Inf(1), Hi: math.Inf(-1), Log: true}
	ys = xs
	take := func(x, y float64) {
		if x > 0 && y > 0 {
			xs.Lo, xs.Hi = min(xs.Lo, x*milli/2), max(xs.Hi, x*milli*2)
			ys.Lo, ys.Hi = min(ys.Lo, y/2), max(ys.Hi, y*1.5)
		}
	}
	for i := range r.Rows {
		if x, ok := r.Rows[i].Intensity(); ok {
			take(x, r.Rows[i].FlopsPerS)
		}
	}
	for i := range r.Phases {
		if ridge := r.Ridge(&r.Phases[i]); ridge > 0 {
			take(2*ridge, r.FlopsPerS)
		}
	}
	if xs.Lo > xs.Hi {
		return widget.Scale{Lo: 1, Hi: 10, Log: true}, widget.Scale{Lo: 1, Hi: 10, Log: true}
	}
	return xs, ys
}

// describe returns the facts of the selected kernel in one line.
func describe(r *roofs.Roofs, row *roofs.Row) string {
	said := fmt.Sprintf("%s %s, %s", row.Sign, row.Kernel, row.Phase.Phase)
	x, ok := row.Intensity()
	switch {
	case row.AtFloor:
		return said + ": as short as an empty timed pass, so it has no rate"
	case !ok || x <= 0:
		return fmt.Sprintf("%s: moves data and computes nothing: %s", said,
			table.Scaled(row.BytesPerS, "B/s"))
	}
	return fmt.Sprintf("%s: %s FLOP/byte, %s of at most %s here", said, roofs.Intensity(x),
		table.Scaled(row.FlopsPerS, "FLOP/s"), table.Scaled(r.Roof(row.Phase, x), "FLOP/s"))
}
