// Package widget draws user interface elements: tables, texts, charts, input lines, dialogs and themes. It
// also runs the background jobs that compute the content of the screen.
package widget

import (
	"strings"

	"gpuscope/internal/printable"
)

// canvas is a frame under construction. Each line is filled from left to right.
type canvas struct {
	lines  []strings.Builder
	used   []int // number of filled cells of each line
	glyphs Glyphs
}

// Draw draws lines into a rectangle. Everything to the left of the rectangle must already be drawn.
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
		// Remove control characters again, in case they were not removed where the text entered the
		// program.
		if l = printable.Styled(l); Width(l) > r.W {
			l = Cut(l, r.W)
		}
		l = c.glyphs.Finish(l, r.W)
		c.lines[y].WriteString(l)
		c.used[y] += Width(l)
	}
}

// Put replaces whole lines of the canvas.
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

// Rect is a rectangle of the screen in cells. Its origin is the top left corner.
type Rect struct{ X, Y, W, H int }

func Area(x, y, w, h int) Rect { return Rect{x, y, w, h} }

// Holds reports whether the cell at x, y is inside the rectangle.
func (r Rect) Holds(x, y int) bool { return x >= r.X && x < r.X+r.W && y >= r.Y && y < r.Y+r.H }

// NewCanvas returns an empty canvas of h lines.
func NewCanvas(h int, g Glyphs) *canvas {
	return &canvas{lines: make([]strings.Builder, h), used: make([]int, h), glyphs: g}
}
