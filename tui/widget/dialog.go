package widget

import (
	"slices"
	"strings"

	"gpuscope/internal/printable"
)

// Dialog is a dialog in a frame. It receives every key until it is closed.
type Dialog interface {
	Typed(k Key) (closed bool)
	Name() string       // title of the frame
	Hints() [][2]string // keys with their meanings
	// Lines returns the number of lines in a frame that has room for w cells: `all` with everything shown,
	// `least` with only the essential lines.
	Lines(w int) (all, least int)
	// Render draws the content of the frame in at most h lines of w cells.
	Render(t *Theme, w, h int) []string
	// Choose moves the cursor to the row drawn at the given line. It returns false if no row was drawn there.
	Choose(line int) bool
}

// Prompt precedes the text that is typed into a dialog.
const Prompt = " : "

// Chooser is a dialog for choosing one row from a list. It can also have an input line.
type Chooser struct {
	Title string
	Line  *InputLine      // nil if the dialog has no input line
	Rows  func() []string // returns the current rows
	None  string          // text shown if there are no rows
	More  [][2]string     // explanations below the rows: labels and their meanings
	Picker
	Take   func(row int, typed string) error // called on enter; row -1: no rows; error: stay open
	Remove func(row int)                     // nil if rows cannot be removed
	Keep   bool                              // also stay open if Take returns nil
	wrong  string                            // error message about the input
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

func (c *Chooser) Name() string { return c.Title }

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
	if c.Line != nil {
		more += 2 // the input line, and a line for an error
	}
	return rows + more, min(rows, 3) + more
}

// explained returns the wrapped explanations below the rows.
func (c *Chooser) explained(w int) []string {
	var lines []string
	for _, l := range c.More {
		lines = append(lines, WrapUnder(l[0]+l[1], w-4, len(l[0]), len(l[0]))...)
	}
	return lines
}

func (c *Chooser) Render(t *Theme, w, h int) []string {
	var lines []string
	if c.Line != nil {
		lines = append(lines, t.Put(Accent, Prompt)+c.Line.Render(w-Width(Prompt)-1))
	}
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

// Picker is the cursor of a dialog's rows. It stores the lines where the rows were drawn.
type Picker struct {
	Cursor int
	line   int // line of the first visible row
	First  int // index of the first visible row
	shown  int // number of visible rows
}

// Window scrolls n rows so that the cursor is visible in `room` lines, and returns the range of the visible
// rows. `line` is the line at which the first visible row is drawn.
func (p *Picker) Window(n, line, room int) (from, to int) {
	p.line, p.First = line, Clamp(p.Cursor-room+1, 0, max(0, n-room))
	p.shown = max(0, min(room, n-p.First))
	return p.First, p.First + p.shown
}

// Choose moves the cursor to the row drawn at the given line. It returns false if no row was drawn there.
func (p *Picker) Choose(line int) bool {
	if line < p.line || line >= p.line+p.shown {
		return false
	}
	p.Cursor = p.First + line - p.line
	return true
}
