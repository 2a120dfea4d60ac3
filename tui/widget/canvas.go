// Package widget draws: tables, texts, charts, input lines, dialogs and themes, and it has the jobs that
// compute what they show. It knows no view and nothing of the program.
package widget

import (
	"strings"

	"gpuscope/internal/printable"
)

// canvas is a frame being put together: lines, filled from the left.
type canvas struct {
	lines  []strings.Builder
	used   []int // cells
	glyphs Glyphs
}

// Draw puts lines into a rectangle; what stands left of it on its lines must have been drawn before.
func (c *canvas) Draw(r Rect, lines []string) {
	for i, l := range lines[:min(len(lines), max(0, r.H))] {
		y := r.Y + i
		if y < 0 || y >= len(c.lines) {
			continue
		}
		if gap := r.X - c.used[y]; gap > 0 {
			c.lines[y].WriteString(Blank(gap))
			c.used[y] += gap
		}
		// Text of others was cleaned where it got in. Whatever was forgotten ends here.
		if l = printable.Styled(l); Width(l) > r.W {
			l = Cut(l, r.W)
		}
		l = c.glyphs.Finish(l, r.W)
		c.lines[y].WriteString(l)
		c.used[y] += Width(l)
	}
}

// Put draws over whole lines.
func (c *canvas) Put(r Rect, lines []string) {
	for y := max(0, r.Y); y < min(len(c.lines), r.Y+r.H); y++ {
		c.lines[y].Reset()
		c.used[y] = 0
	}
	c.Draw(r, lines)
}

func (c *canvas) String() string {
	var b strings.Builder
	for i := range c.lines {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(c.lines[i].String())
	}
	return b.String()
}

func Indent(lines []string) []string {
	for i, l := range lines {
		if l != "" {
			lines[i] = " " + l
		}
	}
	return lines
}

// Rect is a part of the screen in cells, from the top left.
type Rect struct{ X, Y, W, H int }

// Area is the part of the screen of w by h cells whose top left is x, y.
func Area(x, y, w, h int) Rect { return Rect{x, y, w, h} }

// Holds says whether a cell is in a rectangle.
func (r Rect) Holds(x, y int) bool { return x >= r.X && x < r.X+r.W && y >= r.Y && y < r.Y+r.H }

// NewCanvas is an empty canvas of h lines.
func NewCanvas(h int, g Glyphs) *canvas {
	return &canvas{lines: make([]strings.Builder, h), used: make([]int, h), glyphs: g}
}
