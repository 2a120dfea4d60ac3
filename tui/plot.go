package tui

import (
	"math"
	"strings"

	"gpuscope/trace/table"
)

// plot is a drawing area of cells with axes: a series of points or lines in dots, as fine as the glyph set
// has them, and a second one of lighter signs behind it. Which is which can be seen without colour.
type plot struct {
	w, h     int // cells
	set      string
	nx, ny   int // dots of a cell
	dots     []bool
	behind   []bool // by cell
	xs, ys   scale
	marks    []rune // under the axis, by column
	column   int    // of the cursor, -1: none
	at       float64
	label    func(y float64) string
	position func(x float64) string
	beyond   string // behind the last position
}

// scale maps values to a range of places.
type scale struct {
	lo, hi float64
	log    bool
}

// share is where v stands between the ends: 0 to 1.
func (s scale) share(v float64) float64 {
	lo, hi := s.lo, s.hi
	if s.log {
		lo, hi, v = math.Log(max(lo, 1)), math.Log(max(hi, 1)), math.Log(max(v, 1))
	}
	if hi <= lo {
		return 0
	}
	return (v - lo) / (hi - lo)
}

// at is the value at a share.
func (s scale) at(share float64) float64 {
	if s.log {
		lo, hi := math.Log(max(s.lo, 1)), math.Log(max(s.hi, 1))
		return math.Exp(lo + share*(hi-lo))
	}
	return s.lo + share*(s.hi-s.lo)
}

func newPlot(g glyphs, w, h int, xs, ys scale) *plot {
	p := &plot{w: w, h: h, set: g.set, nx: 1, ny: 2, xs: xs, ys: ys, column: -1}
	switch g.set {
	case "braille":
		p.nx, p.ny = 2, 4
	case "ascii":
		p.ny = 1
	}
	p.dots, p.behind = make([]bool, w*p.nx*h*p.ny), make([]bool, w*h)
	p.marks = []rune(blank(w))
	return p
}

// spot is the share of the axis as one of n places, false outside.
func spot(share float64, n int) (int, bool) {
	if math.IsNaN(share) || share < -1e-9 || share > 1+1e-9 {
		return 0, false
	}
	return min(n-1, max(0, int(math.Round(share*float64(n-1))))), true
}

// dot draws a point.
func (p *plot) dot(x, y float64) {
	i, ok1 := spot(p.xs.share(x), p.w*p.nx)
	j, ok2 := spot(p.ys.share(y), p.h*p.ny)
	if ok1 && ok2 {
		p.dots[(p.h*p.ny-1-j)*p.w*p.nx+i] = true
	}
}

// line draws a function by its values at rising places, joined.
func (p *plot) line(xs, ys []float64) {
	for i := range xs {
		p.dot(xs[i], ys[i])
		if i == 0 {
			continue
		}
		a, ok1 := spot(p.ys.share(ys[i-1]), p.h*p.ny)
		b, ok2 := spot(p.ys.share(ys[i]), p.h*p.ny)
		for ; ok1 && ok2 && a != b; a += toward(b - a) {
			p.dot(xs[i], p.ys.at(float64(a)/float64(max(1, p.h*p.ny-1))))
		}
	}
}

func toward(n int) int {
	if n < 0 {
		return -1
	}
	return 1
}

// back draws a point of the second series.
func (p *plot) back(x, y float64) {
	i, ok1 := spot(p.xs.share(x), p.w)
	j, ok2 := spot(p.ys.share(y), p.h)
	if ok1 && ok2 {
		p.behind[(p.h-1-j)*p.w+i] = true
	}
}

// mark puts a sign under the axis at x. The later one stays, unless it says less.
func (p *plot) mark(x float64, sign rune) {
	if i, ok := spot(p.xs.share(x), p.w); ok {
		p.marks[i] = sign
	}
}

// cell is the sign of a cell, "" where nothing of the first series is in it.
func (p *plot) cell(row, col int) string {
	bits := 0
	for j := range p.ny {
		for i := range p.nx {
			if p.dots[(row*p.ny+j)*p.w*p.nx+col*p.nx+i] {
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

// render draws the plot with its axes, in h + 2 lines of w + axis cells.
func (p *plot) render(t *theme) []string {
	var lines []string
	top, bottom := p.label(p.ys.hi), p.label(p.ys.lo)
	for row := range p.h {
		label := ""
		switch {
		case row == 0:
			label = top
		case row == p.h-1:
			label = bottom
		case p.h > 6 && row == p.h/2: // between two whole numbers there may be none
			middle := p.label(p.ys.at(float64(p.h-1-row) / float64(p.h-1)))
			if middle != top && middle != bottom {
				label = middle
			}
		}
		var b strings.Builder
		b.WriteString(t.put(dim, fitLeft(label, axis-1)+" "+markBar))
		for col := range p.w {
			switch sign := p.cell(row, col); {
			case sign != "":
				b.WriteString(t.put(graphA, sign))
			case p.behind[row*p.w+col]:
				b.WriteString(t.put(graphB, "·"))
			case col == p.column:
				b.WriteString(t.put(dim, markBar))
			default:
				b.WriteByte(' ')
			}
		}
		lines = append(lines, strings.TrimRight(b.String(), " "))
	}
	marks := string(p.marks)
	if p.column >= 0 {
		signs := []rune(marks)
		signs[p.column] = '▲'
		marks = string(signs)
	}
	lines = append(lines, strings.TrimRight(blank(axis+1)+t.put(accent, strings.TrimRight(marks, " ")), " "))
	first, last := p.position(p.xs.lo), p.position(p.xs.hi)+p.beyond
	middle := ""
	if p.column >= 0 {
		middle = p.position(p.at)
	}
	foot := []rune(fit(first, p.w-table.Width(last)) + last)
	at := clamp(p.column-table.Width(middle)/2, table.Width(first)+1,
		p.w-table.Width(last)-1-table.Width(middle))
	atEnd := middle == first || middle == p.position(p.xs.hi)
	if p.column >= 0 && !atEnd && at > table.Width(first) {
		copy(foot[at:], []rune(middle))
	}
	return append(lines, blank(axis+1)+t.put(dim, string(foot)))
}

// axis is how many cells stand left of the strip.
const axis = 10
