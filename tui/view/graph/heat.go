package graph

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"gpuscope/session"
	"gpuscope/trace/table"
	"gpuscope/tui/widget"
)

// heatKey identifies a heat map: the value, and its division into cells.
type heatKey struct {
	valueKey
	session.MapAt
}

// heatLines is the number of lines above and below a heat map. Two lines are above it. The marks of the
// columns, the legend and the position of the window are below it. oddLine is the minimum height of a pane
// that has room for one more line, about NaN, Inf and the error.
const heatLines, oddLine = 5, 14

// mostWide is the maximum width of a cell of a heat map.
const mostWide = 4

// heatSize returns the space for cells of the heat map.
func (p *ValuePage) heatSize() (w, h int) {
	w, h = p.host.Size()
	if h -= heatLines; h+heatLines >= oddLine {
		h--
	}
	return max(1, w-rowCells-1), max(1, h)
}

// mapAt divides the value into as many cells as there is space for. The elements of a value with a single row
// follow each other from cell to cell, in reading order.
func (p *ValuePage) mapAt() session.MapAt {
	w, h := p.heatSize()
	dims := p.dims()
	n, columns := numel(dims), 1
	if len(dims) > 0 {
		columns = max(1, dims[len(dims)-1])
	}
	if live, isCache := p.liveRows(); isCache {
		rows := max(1, live)
		return session.MapAt{
			Width: columns, Rows: ceilDiv(rows, h), Columns: ceilDiv(columns, w), Elements: rows * columns,
		}
	}
	if n <= columns {
		each := max(1, ceilDiv(n, w*h))
		return session.MapAt{Width: min(w*each, columns), Rows: 1, Columns: each}
	}
	return session.MapAt{
		Width: columns, Rows: max(1, ceilDiv(n/columns, h)), Columns: max(1, ceilDiv(columns, w)),
	}
}

func ceilDiv(n, d int) int { return (n + d - 1) / d }

// liveRows returns the number of rows of a KV cache that are in use. The bool is false for other values.
func (p *ValuePage) liveRows() (rows int, isCache bool) {
	return p.at.Index.LiveRows(p.at.Step, p.shownValue())
}

// toggleHeat switches between the numbers and the heat map.
func (p *ValuePage) toggleHeat() {
	p.heat, p.stopped = !p.heat, nil
	p.keepInside()
}

// marks returns the cells of the heat map that the window covers: the first and the last row, and the first
// and the last column. If the window covers parts of several rows of a wrapped value, all columns are marked.
func (p *ValuePage) marks(at session.MapAt) (top, bottom, left, right int) {
	rows, columns := p.window()
	height, across := p.shape()
	rows, columns = min(rows, height-p.Row), min(columns, across-p.column)
	first := p.Row*across + p.column
	last := (p.Row+rows-1)*across + p.column + columns - 1
	cell := func(i int) (row, column int) { return i / at.Width / at.Rows, i % at.Width / at.Columns }
	top, left = cell(first)
	bottom, right = cell(max(first, last))
	if at.Width != across && top != bottom {
		left, right = 0, (at.Width-1)/at.Columns
	}
	return top, bottom, left, right
}

// moveByCells moves the window by cells of the heat map.
func (p *ValuePage) moveByCells(m widget.Motion) {
	_, lines := p.heatSize()
	down, right := 0, 0
	switch m {
	case widget.Up:
		down = -1
	case widget.Down:
		down = 1
	case widget.HalfUp:
		down = -max(1, lines/2)
	case widget.HalfDown:
		down = max(1, lines/2)
	case widget.PageUp:
		down = -lines
	case widget.PageDown:
		down = lines
	case widget.Left:
		right = -1
	case widget.Right:
		right = 1
	}
	at := p.mapAt()
	_, across := p.shape()
	if at.Width == across {
		p.Row += down * at.Rows
		p.column += right * at.Columns
		return
	}
	by := down*at.Width + right*at.Columns // in elements of a wrapped value
	if rows := by / across; by == 0 || rows != 0 {
		p.Row += rows
	} else {
		p.Row += by / max(by, -by)
	}
}

// PointAt moves the window to a cell of the heat map.
func (p *ValuePage) PointAt(x, y, _ int) bool {
	m := p.heatMap()
	if !p.heat || m == nil || m.Columns == 0 {
		return false
	}
	row := y - p.headingLines()
	column := (x - rowCells - 1) / p.cellWidth(m)
	if x <= rowCells || row < 0 || row >= m.Rows || column >= m.Columns {
		return true
	}
	at := p.heatTask.Given.MapAt
	if _, across := p.shape(); at.Width == across {
		p.Row, p.column = row*at.Rows, column*at.Columns
	} else {
		p.Row, p.column = (row*at.Width+column*at.Columns)/across, 0
	}
	p.keepInside()
	return true
}

// headingLines returns the number of lines above a heat map.
func (p *ValuePage) headingLines() int {
	if _, h := p.host.Size(); h < oddLine {
		return statLines - 1
	}
	return statLines
}

// heatMap returns the heat map of the shown value, or nil if it is not known yet.
func (p *ValuePage) heatMap() *session.HeatMap {
	got := p.heatTask.Value
	if got.t == nil || got.key.value != p.shownValue() || p.compares != (got.key.minus >= 0) {
		return nil
	}
	return got.t.Map
}

// cellWidth returns the width of a cell on the screen.
func (p *ValuePage) cellWidth(m *session.HeatMap) int {
	room, _ := p.heatSize()
	return widget.Clamp(room/max(1, m.Columns), 1, mostWide)
}

// drawHeat draws the heat map with its legend.
func (p *ValuePage) drawHeat(t *widget.Theme, g widget.Glyphs, w, h int) []string {
	got, m := p.heatTask.Value, p.heatMap()
	switch {
	case p.page.Value.err != nil:
		return failed(t, p.page.Value.err, w, h)
	case got.err != nil:
		return failed(t, got.err, w, h)
	case m == nil:
		return []string{t.Put(widget.Dim, " "+p.reading())}
	case len(m.Cells) == 0:
		return []string{t.Put(widget.Dim, " No elements at this shape.")}
	}
	at, wide, shades := p.heatTask.Given.MapAt, p.cellWidth(m), g.Shades()
	_, lines := p.heatSize()
	top, bottom, left, right := p.marks(at)
	var out []string
	for row := range min(m.Rows, lines) {
		var b strings.Builder
		mark := " "
		if row >= top && row <= bottom {
			mark = widget.MarkSelected
		}
		name := rowName(row*at.Rows*at.Width, at.Width, got.t.Dims)
		b.WriteString(t.Put(widget.Dim, widget.Fit(" "+widget.CutMiddle(name, rowCells-2), rowCells)))
		b.WriteString(t.Put(widget.Selected, mark))
		run, paint := "", widget.Plain
		for _, v := range m.Cells[row*m.Columns:][:m.Columns] {
			sign, of := heatSign(float64(v), &got.scale, shades)
			if of != paint {
				b.WriteString(t.Put(paint, run))
				run, paint = "", of
			}
			run += strings.Repeat(sign, wide)
		}
		b.WriteString(t.Put(paint, run))
		out = append(out, widget.Cut(b.String(), w))
	}
	under := widget.Blank(rowCells+1+left*wide) +
		t.Put(widget.Selected, strings.Repeat("▲", max(1, right-left+1)*wide))
	here := float64(m.Cells[min(len(m.Cells)-1, top*m.Columns+left)])
	foot := p.foot(p.page.Given, got.t.Dims)
	foot.Segments = append(foot.Segments, table.Say(1, "cell %s", widget.Number(here)))
	out = append(out, widget.Cut(under, w), widget.Cut(" "+legend(&got.scale, shades, m, w-2), w),
		t.Put(widget.Dim, " "+foot.Fit(w-2)))
	return out[:min(len(out), max(0, h))]
}

// heatSign returns the character and the paint of a cell.
func heatSign(v float64, scale *widget.HeatScale, shades []string) (string, widget.Paint) {
	switch {
	case math.IsNaN(v):
		return "N", widget.Bad
	case math.IsInf(v, 0):
		return "∞", widget.Bad
	case v == 0:
		return " ", widget.Plain
	}
	return shades[scale.Level(v)], widget.GraphA
}

// legend returns the line that explains the shades. On a narrow screen, it removes the spaces inside each
// entry.
func legend(scale *widget.HeatScale, shades []string, m *session.HeatMap, w int) string {
	var signs [][2]string
	if scale.Max > 0 {
		for level := len(shades) - 1; level > 0; level-- {
			signs = append(signs, [2]string{shades[level], "≥ " + threeDigits(scale.Least[level])})
		}
		signs = append(signs, [2]string{shades[0], "less"})
	}
	var zero, nan, inf bool
	for _, c := range m.Cells {
		v := float64(c)
		zero, nan, inf = zero || v == 0, nan || math.IsNaN(v), inf || math.IsInf(v, 0)
	}
	for _, s := range []struct {
		is   bool
		sign [2]string
	}{{zero, [2]string{"blank", "0"}}, {nan, [2]string{"N", "NaN"}}, {inf, [2]string{"∞", "Inf"}}} {
		if s.is {
			signs = append(signs, s.sign)
		}
	}
	var long, short []string
	for _, s := range signs {
		long = append(long, s[0]+" "+s[1])
		if tight, is := strings.CutPrefix(s[1], "≥ "); is {
			short = append(short, s[0]+"≥"+tight)
		} else {
			short = append(short, s[0]+" "+s[1])
		}
	}
	if text := strings.Join(long, "  "); widget.Width(text) <= w {
		return text
	}
	return strings.Join(short, " ")
}

// drawn describes for the title what a cell of the heat map shows.
func (p *ValuePage) drawn() table.Segment {
	at := p.mapAt()
	if p.heatMap() != nil {
		at = p.heatTask.Given.MapAt
	}
	x := "|x|"
	if p.compares {
		x = "|Δ|"
	}
	if at.Rows*at.Columns == 1 {
		return table.Segment{Rank: 1, Text: "heat map: " + x + " of each element", Short: "heat map: " + x}
	}
	return table.Segment{
		Rank: 1, Text: fmt.Sprintf("heat map: largest %s of %s×%s elements", x, widget.Count(at.Rows),
			widget.Count(at.Columns)),
		Short: fmt.Sprintf("max %s of %d×%d", x, at.Rows, at.Columns),
	}
}

// threeDigits formats a number above 0 with three significant digits.
func threeDigits(v float64) string {
	if v >= 1e-3 && v < 1e6 {
		digits := max(0, 2-int(math.Floor(math.Log10(v))))
		return strconv.FormatFloat(v, 'f', digits, 64)
	}
	return strconv.FormatFloat(v, 'e', 1, 64)
}
