package widget

import (
	"math"
	"strings"

	"gpuscope/trace/table"
)

// Plot is a drawing area of cells with axes: a series of points or lines in dots, as fine as the glyph set
// has them, and a second one of lighter signs in the background. Which is which can be seen without colour.
type Plot struct {
	W, h     int // cells
	set      string
	nx, ny   int // dots of a cell
	dots     []bool
	backdrop []bool // by cell
	Xs, ys   Scale
	marks    []rune // under the axis, by column
	Column   int    // of the cursor, -1: none
	At       float64
	Label    func(y float64) string
	Position func(x float64) string
	Beyond   string // after the last position
}

// Scale maps values to a range of places.
type Scale struct {
	Lo, Hi float64
	Log    bool
}

// Share is where v stands between the ends: 0 to 1.
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

// At is the value at a share.
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
	p.dots, p.backdrop = make([]bool, w*p.nx*h*p.ny), make([]bool, w*h)
	p.marks = []rune(Blank(w))
	return p
}

// Spot is the share of the axis as one of n places, false outside.
func Spot(share float64, n int) (int, bool) {
	if math.IsNaN(share) || share < -1e-9 || share > 1+1e-9 {
		return 0, false
	}
	return min(n-1, max(0, int(math.Round(share*float64(n-1))))), true
}

// Dot draws a point.
func (p *Plot) Dot(x, y float64) {
	i, ok1 := Spot(p.Xs.Share(x), p.W*p.nx)
	j, ok2 := Spot(p.ys.Share(y), p.h*p.ny)
	if ok1 && ok2 {
		p.dots[(p.h*p.ny-1-j)*p.W*p.nx+i] = true
	}
}

// Line draws a function by its values at rising places, joined.
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

// Mark puts a sign under the axis at x. The later one stays, unless it says less.
func (p *Plot) Mark(x float64, sign rune) {
	if i, ok := Spot(p.Xs.Share(x), p.W); ok {
		p.marks[i] = sign
	}
}

// cell is the sign of a cell, "" where nothing of the first series is in it.
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
		// Braille numbers its dots down the left column, down the right one, and then the lowest two.
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

// Render draws the plot with its axes, in h + 2 lines of w + axis cells.
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
		case p.h > 6 && row == p.h/2: // between two whole numbers there may be none
			middle := p.Label(p.ys.At(float64(p.h-1-row) / float64(p.h-1)))
			if middle != top && middle != bottom {
				label = middle
			}
		}
		var b strings.Builder
		b.WriteString(t.Put(Dim, FitLeft(label, Axis-1)+" "+MarkBar))
		for col := range p.W {
			switch sign := p.cell(row, col); {
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

// Axis is how many cells stand left of the strip.
const Axis = 10
