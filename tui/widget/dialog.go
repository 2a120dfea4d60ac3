package widget

import (
	"slices"
	"strings"

	"gpuscope/internal/printable"
)

// Dialog stands at the foot of the screen and takes every key until it is closed.
type Dialog interface {
	Typed(k Key) (closed bool)
	Hints() [][2]string // its keys, and what they do
	// Lines are how many of w cells it would like to have, and without how many it says less than it must.
	Lines(w int) (all, least int)
	// Render draws it in at most h lines of w cells.
	Render(t *Theme, w, h int) []string
	// Choose puts the cursor on the row at a line of what was drawn, and says whether there is one.
	Choose(line int) bool
}

// Chooser is a dialog of rows one of which is chosen. A line can be typed where it has a place for one.
type Chooser struct {
	Title string
	Line  *InputLine      // nil: nothing can be typed
	Rows  func() []string // what there is to choose from, as it is now
	None  string          // said where there is nothing
	More  [][2]string     // explains, under the rows: a label and what it means
	Picker
	Take   func(row int, typed string) error // enter; row is -1 where there is none. nil closes the dialog
	Remove func(row int)                     // nil: rows cannot be removed
	Keep   bool                              // it stays open when something was taken
	wrong  string                            // with what was typed
}

func (c *Chooser) Typed(k Key) (closed bool) {
	rows := c.Rows()
	c.wrong = ""
	switch {
	case k.Name == "esc":
		return true
	case k.Name == "enter":
		typed := ""
		if c.Line != nil {
			typed = strings.TrimSpace(c.Line.Text())
		}
		if c.Keep && typed == "" {
			return true
		}
		if err := c.Take(min(c.Cursor, len(rows)-1), typed); err != nil {
			c.wrong = err.Error()
			return false
		}
		if c.Line != nil {
			c.Line.Set("")
		}
		return !c.Keep
	case k.Name == "up":
		c.Cursor = max(0, c.Cursor-1)
	case k.Name == "down":
		c.Cursor = Clamp(c.Cursor+1, 0, max(0, len(rows)-1))
	case k.Name == "delete" && c.Remove != nil && c.Cursor < len(rows) && c.Line.after == "":
		c.Remove(c.Cursor)
		c.Cursor = Clamp(c.Cursor, 0, max(0, len(rows)-2))
	case c.Line != nil:
		c.Line.Handle(k)
	}
	return false
}

func (c *Chooser) Hints() [][2]string {
	said := [][2]string{{"enter", "take"}, {"esc", "close"}}
	if len(c.Rows()) > 0 {
		said = slices.Insert(said, 1, [2]string{Sign("up") + Sign("down"), "choose"})
		if c.Remove != nil {
			said = slices.Insert(said, 2, [2]string{"delete", "remove"})
		}
	}
	return said
}

func (c *Chooser) Lines(w int) (all, least int) {
	more, rows := len(c.explained(w)), max(1, len(c.Rows()))
	return 2 + rows + more, 2 + min(rows, 3) + more
}

// explained are the lines under the rows, none of which is cut.
func (c *Chooser) explained(w int) []string {
	var lines []string
	for _, l := range c.More {
		lines = append(lines, WrapUnder(l[0]+l[1], w-4, len(l[0]), len(l[0]))...)
	}
	return lines
}

func (c *Chooser) Render(t *Theme, w, h int) []string {
	head := t.Put(Accent, " "+Cut(c.Title, w-2))
	if c.Line != nil {
		title := " " + Cut(c.Title+" ", w/2)
		head = t.Put(Accent, title) + c.Line.Render(w-Width(title)-1)
	}
	lines := []string{head}
	if c.wrong != "" {
		lines = append(lines, t.Put(Bad, Cut(" "+MarkFail+" "+printable.Clean(c.wrong), w-1)))
	}
	rows, more := c.Rows(), c.explained(w)
	room := max(1, h-len(lines)-len(more))
	from, to := c.Window(len(rows), len(lines), room)
	for i := from; i < to; i++ {
		l := Cut(" "+printable.Clean(rows[i]), w-1)
		if i == c.Cursor {
			lines = append(lines, t.Put(Selected, MarkSelected+l))
		} else {
			lines = append(lines, " "+l)
		}
	}
	if len(rows) == 0 {
		lines = append(lines, t.Put(Dim, Cut("   "+c.None, w-1)))
	}
	for _, l := range more {
		lines = append(lines, t.Put(Dim, Cut("   "+l, w-1)))
	}
	return lines[:min(len(lines), max(1, h))]
}

// Picker is a cursor in rows of a dialog, and where they were drawn.
type Picker struct {
	Cursor int
	line   int // of the first row in sight
	First  int // that row
	shown  int // rows in sight
}

// Window is which of n rows are in sight, from a line on that leaves room for so many.
func (p *Picker) Window(n, line, room int) (from, to int) {
	p.line, p.First = line, Clamp(p.Cursor-room+1, 0, max(0, n-room))
	p.shown = max(0, min(room, n-p.First))
	return p.First, p.First + p.shown
}

// Choose puts the cursor on the row at a line, and says whether there is one.
func (p *Picker) Choose(line int) bool {
	if line < p.line || line >= p.line+p.shown {
		return false
	}
	p.Cursor = p.First + line - p.line
	return true
}
