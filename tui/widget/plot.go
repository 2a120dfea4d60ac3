package widget

import (
	"math"
	"strings"

	"gpuscope/trace/table"
)

// Plot is a chart with axes. The first series is drawn as points or lines with the finest dots of the glyph
// set. The second series is drawn with lighter characters behind the first, so that the series differ even
// without color.
type Plot struct {
	W, h     int // size of the chart in cells
	set      string
	nx, ny   int // number of dots in a cell, horizontally and vertically
	dots     []bool
	backdrop []bool // cells with a point of the second series
	names    []rune // cells with a character of a name; 0 if there is none
	Xs, ys   Scale
	marks    []rune // marks below the axis, one per column
	Column   int    // column of the cursor; -1 if there is none
	At       float64
	Label    func(y float64) string
	Position func(x float64) string
	Beyond   string // text that is drawn after the right end of the x axis
}

// Scale maps the values from Lo to Hi to the range 0 to 1, linearly or logarithmically.
type Scale struct {
	Lo, Hi float64
	Log    bool
}

// Share returns the relative place of v on the scale: 0 at Lo, 1 at Hi.
func (s Scale) Share(v float64) float64 {
	lo, hi := s.Lo, s.Hi
	if s.Log {
		lo, hi, v = math.Log(max(lo, 1)), math.Log(max(hi, 1)), math.Log(max(v, 1))
	}
	if hi <= lo {
		return 0
	}
	return (v - lo) / (hi - lo)
}

// At is the inverse of Share: it returns the value at the relative place `share`, from 0 to 1.
func (s Scale) At(share float64) float64 {
	if s.Log {
		lo, hi := math.Log(max(s.Lo, 1)), math.Log(max(s.Hi, 1))
		return math.Exp(lo + share*(hi-lo))
	}
	return s.Lo + share*(s.Hi-s.Lo)
}

func NewPlot(g Glyphs, w, h int, xs, ys Scale) *Plot {
	p := &Plot{W: w, h: h, set: g.set, nx: 1, ny: 2, Xs: xs, ys: ys, Column: -1}
	switch g.set {
	case "braille":
		p.nx, p.ny = 2, 4
	case "ascii":
		p.ny = 1
	}
	p.dots, p.backdrop, p.names = make([]bool, w*p.nx*h*p.ny), make([]bool, w*h), make([]rune, w*h)
	p.marks = []rune(Blank(w))
	return p
}

// Spot converts a relative place on an axis (0 to 1) to an index from 0 to n-1. It returns false if the place
// is not on the axis.
func Spot(share float64, n int) (int, bool) {
	if math.IsNaN(share) || share < -1e-9 || share > 1+1e-9 {
		return 0, false
	}
	return min(n-1, max(0, int(math.Round(share*float64(n-1))))), true
}

// Dot draws a point of the first series.
func (p *Plot) Dot(x, y float64) {
	i, ok1 := Spot(p.Xs.Share(x), p.W*p.nx)
	j, ok2 := Spot(p.ys.Share(y), p.h*p.ny)
	if ok1 && ok2 {
		p.dots[(p.h*p.ny-1-j)*p.W*p.nx+i] = true
	}
}

// Line draws the graph of a step function through points that are sorted by x. At each point it draws a
// vertical line from the previous point's height to the point.
func (p *Plot) Line(xs, ys []float64) {
	for i := range xs {
		p.Dot(xs[i], ys[i])
		if i == 0 {
			continue
		}
		a, ok1 := Spot(p.ys.Share(ys[i-1]), p.h*p.ny)
		b, ok2 := Spot(p.ys.Share(ys[i]), p.h*p.ny)
		for ; ok1 && ok2 && a != b; a += Toward(b - a) {
			p.Dot(xs[i], p.ys.At(float64(a)/float64(max(1, p.h*p.ny-1))))
		}
	}
}

func Toward(n int) int {
	if n < 0 {
		return -1
	}
	return 1
}

// Back draws a point of the second series.
func (p *Plot) Back(x, y float64) {
	i, ok1 := Spot(p.Xs.Share(x), p.W)
	j, ok2 := Spot(p.ys.Share(y), p.h)
	if ok1 && ok2 {
		p.backdrop[(p.h-1-j)*p.W+i] = true
	}
}

// Name writes the name of a series, in ASCII, at the height y, as far to the right as possible without
// covering the first series. Call Name after all points are drawn. If there is no room, it writes nothing.
func (p *Plot) Name(y float64, name string) {
	j, ok := Spot(p.ys.Share(y), p.h)
	text, row := []rune(" "+name+" "), p.h-1-j
	for end, free := p.W, p.W; ok && end > 0; end-- {
		if at := row*p.W + end - 1; p.names[at] != 0 || p.cell(row, end-1) != "" {
			free = end - 1
		}
		if free-end+1 == len(text) {
			copy(p.names[row*p.W+end-1:], text)
			return
		}
	}
}

// Put writes a short text over what was drawn before. The first letter of the text is at the point (x, y). A
// text in brackets is centred on the point.
func (p *Plot) Put(x, y float64, text string) {
	i, ok1 := Spot(p.Xs.Share(x), p.W)
	j, ok2 := Spot(p.ys.Share(y), p.h)
	if !ok1 || !ok2 {
		return
	}
	if strings.HasPrefix(text, "(") {
		i--
	}
	for _, r := range text {
		if i >= 0 && i < p.W {
			p.names[(p.h-1-j)*p.W+i] = r
		}
		i++
	}
}

// Mark puts a character below the axis at x, in place of an earlier mark in the same column.
func (p *Plot) Mark(x float64, sign rune) {
	if i, ok := Spot(p.Xs.Share(x), p.W); ok {
		p.marks[i] = sign
	}
}

// cell returns the character for one cell of the first series, or "" if the cell has no point.
func (p *Plot) cell(row, col int) string {
	bits := 0
	for j := range p.ny {
		for i := range p.nx {
			if p.dots[(row*p.ny+j)*p.W*p.nx+col*p.nx+i] {
				bits |= 1 << (j*p.nx + i)
			}
		}
	}
	switch {
	case bits == 0:
		return ""
	case p.set == "braille":
		// Bits 0 to 2 of a Braille character are the upper three dots of its left column, and bits 3 to 5 are
		// those of its right column. Bits 6 and 7 are the two dots of its lowest row. order lists these bits
		// row by row, each row from left to right.
		order := [...]int{0, 3, 1, 4, 2, 5, 6, 7}
		sign := rune(0x2800)
		for k, at := range order {
			if bits>>k&1 != 0 {
				sign |= 1 << at
			}
		}
		return string(sign)
	case p.set == "ascii":
		return "o"
	}
	return [...]string{"", "▀", "▄", "█"}[bits]
}

// Render draws the plot and its axes in h+2 lines of W+Axis+1 cells.
func (p *Plot) Render(t *Theme) []string {
	var lines []string
	top, bottom := p.Label(p.ys.Hi), p.Label(p.ys.Lo)
	for row := range p.h {
		label := ""
		switch {
		case row == 0:
			label = top
		case row == p.h-1:
			label = bottom
		case p.h > 6 && row == p.h/2: // this label may be the same as the one at the top or the bottom
			middle := p.Label(p.ys.At(float64(p.h-1-row) / float64(p.h-1)))
			if middle != top && middle != bottom {
				label = middle
			}
		}
		var b strings.Builder
		b.WriteString(t.Put(Dim, FitLeft(label, Axis-1)+" "+MarkBar))
		for col := range p.W {
			switch sign, name := p.cell(row, col), p.names[row*p.W+col]; {
			case name != 0:
				b.WriteRune(name)
			case sign != "":
				b.WriteString(t.Put(GraphA, sign))
			case p.backdrop[row*p.W+col]:
				b.WriteString(t.Put(GraphB, "·"))
			case col == p.Column:
				b.WriteString(t.Put(Dim, MarkBar))
			default:
				b.WriteByte(' ')
			}
		}
		lines = append(lines, strings.TrimRight(b.String(), " "))
	}
	marks := string(p.marks)
	if p.Column >= 0 {
		signs := []rune(marks)
		signs[p.Column] = '▲'
		marks = string(signs)
	}
	lines = append(lines, strings.TrimRight(Blank(Axis+1)+t.Put(Accent, strings.TrimRight(marks, " ")), " "))
	first, last := p.Position(p.Xs.Lo), p.Position(p.Xs.Hi)+p.Beyond
	middle := ""
	if p.Column >= 0 {
		middle = p.Position(p.At)
	}
	foot := []rune(Fit(first, p.W-table.Width(last)) + last)
	at := Clamp(p.Column-table.Width(middle)/2, table.Width(first)+1,
		p.W-table.Width(last)-1-table.Width(middle))
	atEnd := middle == first || middle == p.Position(p.Xs.Hi)
	if p.Column >= 0 && !atEnd && at > table.Width(first) {
		copy(foot[at:], []rune(middle))
	}
	return append(lines, Blank(Axis+1)+t.Put(Dim, string(foot)))
}

// Axis is the width in cells of the labels on the left.
const Axis = 10
