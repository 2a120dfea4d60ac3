package tui

import (
	"strings"

	"gpuscope/internal/printable"
)

// canvas is a frame being put together: lines, filled from the left.
type canvas struct {
	lines  []strings.Builder
	used   []int // cells
	glyphs glyphs
}

// draw puts lines into a rectangle; what stands left of it on its lines must have been drawn before.
func (c *canvas) draw(r rect, lines []string) {
	for i, l := range lines[:min(len(lines), max(0, r.h))] {
		y := r.y + i
		if y < 0 || y >= len(c.lines) {
			continue
		}
		if gap := r.x - c.used[y]; gap > 0 {
			c.lines[y].WriteString(blank(gap))
			c.used[y] += gap
		}
		// Text of others was cleaned where it got in. Whatever was forgotten ends here.
		if l = printable.Styled(l); width(l) > r.w {
			l = cut(l, r.w)
		}
		l = c.glyphs.finish(l, r.w)
		c.lines[y].WriteString(l)
		c.used[y] += width(l)
	}
}

// put draws over whole lines.
func (c *canvas) put(r rect, lines []string) {
	for y := max(0, r.y); y < min(len(c.lines), r.y+r.h); y++ {
		c.lines[y].Reset()
		c.used[y] = 0
	}
	c.draw(r, lines)
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

func indent(lines []string) []string {
	for i, l := range lines {
		if l != "" {
			lines[i] = " " + l
		}
	}
	return lines
}

// rect is a part of the screen in cells, from the top left.
type rect struct{ x, y, w, h int }

// holds says whether a cell is in a rectangle.
func (r rect) holds(x, y int) bool { return x >= r.x && x < r.x+r.w && y >= r.y && y < r.y+r.h }

// newCanvas is an empty canvas of h lines.
func newCanvas(h int, g glyphs) *canvas {
	return &canvas{lines: make([]strings.Builder, h), used: make([]int, h), glyphs: g}
}
