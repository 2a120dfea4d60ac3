// Package rowchart draws a chart of the selected row of a table below the table: its time in each layer or,
// for a row of one dispatch, its time or its grid in each step.
package rowchart

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"gpuscope/internal/printable"
	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/table"
	"gpuscope/tui/widget"
)

// Row is what a chart needs to know about a row of a table.
type Row struct {
	Name string
	// Units holds the dispatches of the row, one list for each layer.
	Units [][]trace.DispatchID
	Each  []float64 // time in ns of each element of Units; nil if one was not measured
	// Column is the name of the column that the table is sorted by. The chart shows the grid if it is "grid",
	// and otherwise the isolated time.
	Column string
}

// fewest is the minimum number of values that a chart shows. The table itself shows two values.
const fewest = 3

// chart holds the numbers of a row.
type chart struct {
	title  string
	names  []string  // of each value: "L3" or "s12"
	values []float64 // NaN if not known
	at     int       // index of the value of the shown step; -1 if there is none
	unit   string
}

// of returns the chart of a row, or nil if there are too few numbers.
func of(ctx context.Context, x *analyze.Index, selection analyze.Selection, r Row) (*chart, error) {
	if len(selection.Steps) == 0 || len(r.Units) == 0 {
		return nil, nil
	}
	r.Name = printable.Clean(r.Name)
	grid := r.Column == "grid"
	if len(r.Each) >= fewest && !grid {
		c := &chart{title: r.Name + ": isolated µs in each layer", at: -1, unit: "µs"}
		for k, unit := range r.Units {
			op := &x.Trace.Graph.Ops[x.Trace.Graph.Dispatches[unit[0]].Op]
			name := fmt.Sprintf("#%d", unit[0])
			if op.Layer != nil {
				name = analyze.LayerName(*op.Layer)
			} else {
				c.title = r.Name + ": isolated µs of each dispatch"
			}
			c.names, c.values = append(c.names, name), append(c.values, r.Each[k]/1e3)
		}
		return c, nil
	}
	return overSteps(ctx, x, selection, r, grid)
}

// overSteps returns the chart of a row over the selected steps or, if one step is selected, over all steps of
// its phase. It returns nil if the row was measured in too few steps.
func overSteps(ctx context.Context, x *analyze.Index, selection analyze.Selection, r Row, grid bool) (*chart,
	error,
) {
	shown := selection.Last()
	steps := selection.Steps
	if len(steps) == 1 {
		steps = nil
		for i := range x.Trace.Steps {
			if x.Trace.Steps[i].Phase == x.Trace.Steps[shown].Phase {
				steps = append(steps, i)
			}
		}
	}
	c := &chart{title: r.Name + ": isolated µs in each step", at: -1, unit: "µs"}
	if grid {
		c.title, c.unit = r.Name+": workgroups in each step", ""
	}
	ids := slices.Concat(r.Units...)
	places := make([]int, len(ids)) // index of each dispatch in the previous step
	known := 0
	for i, step := range steps {
		if i%100 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		s := &x.Trace.Steps[step]
		sum, found := 0.0, false
		for k, id := range ids {
			places[k] = placeOf(x.Trace, s, id, places[k])
			if places[k] < 0 {
				places[k] = 0
				continue
			}
			d := &s.Dispatches[places[k]]
			if grid {
				sum, found = sum+float64(analyze.Product(x.Trace.Plans[d.Plan].Workgroups)), true
			} else if took := analyze.TimeOf(d); took.Measured() {
				sum, found = sum+took.Median/1e3, true
			}
		}
		if step == shown {
			c.at = i
		}
		if !found {
			sum = math.NaN()
		} else {
			known++
		}
		c.names, c.values = append(c.names, fmt.Sprintf("s%d", s.Index)), append(c.values, sum)
	}
	if known < fewest {
		return nil, nil
	}
	return c, nil
}

// placeOf returns the index of a dispatch in a step, or -1. It looks at `likely` first, because most steps
// launch the same dispatches.
func placeOf(t *trace.Trace, s *trace.Step, id trace.DispatchID, likely int) int {
	is := func(d trace.StepDispatch) bool { return t.Plans[d.Plan].Dispatch == id }
	if likely < len(s.Dispatches) && is(s.Dispatches[likely]) {
		return likely
	}
	return slices.IndexFunc(s.Dispatches, is)
}

// key identifies a chart.
type key struct {
	listing     int
	row, column string
}

// Pane computes and draws the chart of the selected row.
type Pane struct {
	task widget.Task[key, *chart]
}

// Load requests the chart of the selected row of a list. row returns what the chart needs to know about the
// row.
func (p *Pane) Load(j *widget.Jobs, rows *widget.TablePane, x *analyze.Index, s analyze.Selection,
	row func(r int) Row,
) {
	r := rows.Current()
	if rows.Table == nil || r < 0 || x == nil {
		p.task.Clear(j)
		return
	}
	sort := rows.Choice.Sort
	p.task.Want(j, key{rows.Listings, rows.Key, sort}, func(ctx context.Context) (*chart, error) {
		wanted := row(r)
		wanted.Column = sort
		return of(ctx, x, s, wanted)
	}, nil)
}

// A chart has at least leastHeight and at most mostHeight lines.
const leastHeight, mostHeight = 8, 16

// Draw returns the chart in at most h lines of w cells: an empty line, the title, the columns, and the names
// below the axis. It returns nil if there is no room or no chart.
func (p *Pane) Draw(t *widget.Theme, g widget.Glyphs, w, h int) []string {
	c := p.task.Value
	room := w - widget.Axis - 2
	if c == nil || h < leastHeight || room < 20 {
		return nil
	}
	h = min(h, mostHeight)
	rule := " ── " + c.title + " "
	lines := []string{"", t.Put(widget.Dim, widget.Cut(rule+strings.Repeat(widget.MarkRule,
		max(0, w-widget.Width(rule)-1)), w-1))}
	columns, places, merged := c.columns(room)
	most := 0.0
	for _, v := range c.values {
		if v > most {
			most = v
		}
	}
	if most > 0 {
		for i := range columns {
			columns[i] /= most
		}
	}
	drawn := g.ColumnChart(columns, h-4, func(int) bool { return false })
	for i, l := range drawn {
		label := ""
		switch {
		case i == 0:
			label = strings.TrimSpace(table.Digits(most) + " " + c.unit)
		case i == len(drawn)-1:
			label = "0"
		}
		lines = append(lines, strings.TrimRight(t.Put(widget.Dim, widget.FitLeft(label, widget.Axis-1)+" "+
			widget.MarkBar)+t.Put(widget.GraphA, strings.TrimRight(l, " ")), " "))
	}
	foot := c.foot(places, room)
	if merged > 1 {
		foot += fmt.Sprintf(" · a column is the largest of %d steps", merged)
	}
	marks := widget.Blank(widget.Axis + 1)
	if c.at >= 0 {
		lines = append(lines, marks+widget.Blank(places[c.at])+t.Put(widget.Accent, "▲"))
	}
	return append(lines, marks+t.Put(widget.Dim, widget.Cut(foot, room)))
}

// columns returns the height of each cell of the axis, and the cell at which each value begins. If there are
// more values than cells, a cell has the largest of `merged` values.
func (c *chart) columns(room int) (cells []float64, places []int, merged int) {
	n := len(c.values)
	places = make([]int, n)
	merged = (n + room - 1) / room
	wide, gap := 1, 0
	if merged == 1 {
		if wide = min(6, room/n); wide > 2 {
			gap = 1
		}
	}
	cells = make([]float64, (n+merged-1)/merged*wide)
	for i, v := range c.values {
		at := i / merged * wide
		places[i] = at
		if math.IsNaN(v) {
			continue
		}
		for k := range wide - gap {
			cells[at+k] = max(cells[at+k], v)
		}
	}
	return cells, places, merged
}

// foot returns the names below the axis, as many as fit.
func (c *chart) foot(places []int, room int) string {
	var b strings.Builder
	used := 0
	for i, name := range c.names {
		if at := places[i]; at >= used && at+len(name) <= room && (i == 0 || at > used) {
			b.WriteString(widget.Blank(at-used) + name)
			used = at + len(name) + 1
			b.WriteByte(' ')
		}
	}
	return strings.TrimRight(b.String(), " ")
}
