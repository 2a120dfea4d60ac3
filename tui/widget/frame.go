package widget

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Box is the content of a frame that covers a part of the screen: a text or a dialog. Foot and Lines may
// contain colors.
type Box struct {
	Title string
	Right string // at the right end of the upper border, such as the position in a long text
	Foot  string // in the lower border, such as the keys of a dialog
	Lines []string
}

// Readable is the width of the frame of a wrapped text, in cells. Longer lines are hard to read.
const Readable = 112

// A frame is at least leastFrame cells wide. If fewer than frameMargin cells of the screen would stay
// visible on each side of the frame, the frame is as wide as the screen, because nobody can read so few
// cells of a line.
const leastFrame, frameMargin = 80, 12

// FrameWidth returns the width of a frame on a screen, both in cells. `wanted` is the width of the content
// with its frame.
func FrameWidth(screen, wanted int) int {
	if w := max(wanted, leastFrame); screen-w >= 2*frameMargin {
		return w
	}
	return screen
}

// Cover draws a box over the rectangle r of the canvas. It dims the rest of `area`.
func (c *canvas) Cover(t *Theme, area, r Rect, b Box) {
	lines := c.framed(t, r, b)
	for y := max(0, area.Y); y < min(len(c.lines), area.Y+area.H); y++ {
		behind := ansi.Strip(c.lines[y].String())
		c.lines[y].Reset()
		i := y - r.Y
		if i < 0 || i >= len(lines) {
			c.lines[y].WriteString(t.Put(Dim, behind))
			continue
		}
		c.lines[y].WriteString(t.Put(Dim, Fit(CutRight(behind, r.X), r.X)))
		c.lines[y].WriteString(lines[i])
		c.lines[y].WriteString(t.Put(Dim, CutLeft(behind, r.X+r.W)))
	}
}

// framed returns the lines of a box with its frame, all of them r.W cells wide.
func (c *canvas) framed(t *Theme, r Rect, b Box) []string {
	edge := func(s string) string { return t.Put(Accent, c.glyphs.Finish(s, r.W)) }
	border := func(left, said, right string) string {
		inner := Width(said) + Width(right)
		return edge(left+MarkRule) + said + edge(strings.Repeat(MarkRule, max(0, r.W-4-inner))) + right
	}
	title, right, foot := "", "", ""
	if b.Right != "" {
		right = c.glyphs.Finish(" "+Cut(b.Right, r.W/2)+" ", r.W)
	}
	if b.Title != "" {
		title = c.glyphs.Finish(" "+Cut(b.Title, r.W-6-Width(right))+" ", r.W)
	}
	if b.Foot != "" {
		foot = c.glyphs.Finish(" "+Cut(b.Foot, r.W-6)+" ", r.W)
	}
	lines := []string{border("┌", t.Put(Strong, title), t.Put(Dim, right)) + edge(MarkRule+"┐")}
	for i := range r.H - 2 {
		line := ""
		if i < len(b.Lines) {
			line = c.glyphs.Finish(Cut(b.Lines[i], r.W-2), r.W-2)
		}
		lines = append(lines, edge(MarkBar)+Fit(line, r.W-2)+edge(MarkBar))
	}
	return append(lines, border("└", foot, "")+edge(MarkRule+"┘"))
}
