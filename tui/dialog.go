package tui

import (
	"slices"
	"strings"

	"gpuscope/internal/printable"
)

// dialog stands at the foot of the screen and takes every key until it is closed.
type dialog interface {
	typed(k key) (closed bool)
	hints() [][2]string // its keys, and what they do
	// lines are how many of w cells it would like to have, and without how many it says less than it must.
	lines(w int) (all, least int)
	// render draws it in at most h lines of w cells.
	render(t *theme, w, h int) []string
	// choose puts the cursor on the row at a line of what was drawn, and says whether there is one.
	choose(line int) bool
}

// chooser is a dialog of rows one of which is chosen. A line can be typed where it has a place for one.
type chooser struct {
	title string
	line  *inputLine      // nil: nothing can be typed
	rows  func() []string // what there is to choose from, as it is now
	none  string          // said where there is nothing
	more  [][2]string     // explains, under the rows: a label and what it means
	picker
	take   func(row int, typed string) error // enter; row is -1 where there is none. nil closes the dialog
	remove func(row int)                     // nil: rows cannot be removed
	keep   bool                              // it stays open when something was taken
	wrong  string                            // with what was typed
}

func (c *chooser) typed(k key) (closed bool) {
	rows := c.rows()
	c.wrong = ""
	switch {
	case k.name == "esc":
		return true
	case k.name == "enter":
		typed := ""
		if c.line != nil {
			typed = strings.TrimSpace(c.line.text())
		}
		if c.keep && typed == "" {
			return true
		}
		if err := c.take(min(c.cursor, len(rows)-1), typed); err != nil {
			c.wrong = err.Error()
			return false
		}
		if c.line != nil {
			c.line.set("")
		}
		return !c.keep
	case k.name == "up":
		c.cursor = max(0, c.cursor-1)
	case k.name == "down":
		c.cursor = clamp(c.cursor+1, 0, max(0, len(rows)-1))
	case k.name == "delete" && c.remove != nil && c.cursor < len(rows) && c.line.after == "":
		c.remove(c.cursor)
		c.cursor = clamp(c.cursor, 0, max(0, len(rows)-2))
	case c.line != nil:
		c.line.handle(k)
	}
	return false
}

func (c *chooser) hints() [][2]string {
	said := [][2]string{{"enter", "take"}, {"esc", "close"}}
	if len(c.rows()) > 0 {
		said = slices.Insert(said, 1, [2]string{sign("up") + sign("down"), "choose"})
		if c.remove != nil {
			said = slices.Insert(said, 2, [2]string{"delete", "remove"})
		}
	}
	return said
}

func (c *chooser) lines(w int) (all, least int) {
	more, rows := len(c.explained(w)), max(1, len(c.rows()))
	return 2 + rows + more, 2 + min(rows, 3) + more
}

// explained are the lines under the rows, none of which is cut.
func (c *chooser) explained(w int) []string {
	var lines []string
	for _, l := range c.more {
		lines = append(lines, wrapUnder(l[0]+l[1], w-4, len(l[0]), len(l[0]))...)
	}
	return lines
}

func (c *chooser) render(t *theme, w, h int) []string {
	head := t.put(accent, " "+cut(c.title, w-2))
	if c.line != nil {
		title := " " + cut(c.title+" ", w/2)
		head = t.put(accent, title) + c.line.render(w-width(title)-1)
	}
	lines := []string{head}
	if c.wrong != "" {
		lines = append(lines, t.put(bad, cut(" "+markFail+" "+printable.Clean(c.wrong), w-1)))
	}
	rows, more := c.rows(), c.explained(w)
	room := max(1, h-len(lines)-len(more))
	from, to := c.window(len(rows), len(lines), room)
	for i := from; i < to; i++ {
		l := cut(" "+printable.Clean(rows[i]), w-1)
		if i == c.cursor {
			lines = append(lines, t.put(selected, markSelected+l))
		} else {
			lines = append(lines, " "+l)
		}
	}
	if len(rows) == 0 {
		lines = append(lines, t.put(dim, cut("   "+c.none, w-1)))
	}
	for _, l := range more {
		lines = append(lines, t.put(dim, cut("   "+l, w-1)))
	}
	return lines[:min(len(lines), max(1, h))]
}

// picker is a cursor in rows of a dialog, and where they were drawn.
type picker struct {
	cursor int
	line   int // of the first row in sight
	first  int // that row
	shown  int // rows in sight
}

// window is which of n rows are in sight, from a line on that leaves room for so many.
func (p *picker) window(n, line, room int) (from, to int) {
	p.line, p.first = line, clamp(p.cursor-room+1, 0, max(0, n-room))
	p.shown = max(0, min(room, n-p.first))
	return p.first, p.first + p.shown
}

// choose puts the cursor on the row at a line, and says whether there is one.
func (p *picker) choose(line int) bool {
	if line < p.line || line >= p.line+p.shown {
		return false
	}
	p.cursor = p.first + line - p.line
	return true
}
