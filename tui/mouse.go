package tui

import (
	"time"

	"gpuscope/tui/view"
	"gpuscope/tui/widget"
)

// mouseDoc describes the mouse actions for the help and for docs/reference/keys.md.
var mouseDoc = [][2]string{
	{"wheel", "Scroll the pane under the pointer: list, detail, text over the view, or dialog."},
	{"click", "Select a row, an operator, a step in the strip of steps, a position in a chart, a cell of a heat map, or a tab."},
	{"double click", "Open the row, like enter."},
	{"header", "Sort the table by this column; click again to reverse the order."},
	{"shift", "Hold shift to select text with the terminal's own selection."},
}

// pointer is one mouse action, a wheel turn or a click, and the cell where it happened.
type pointer struct {
	x, y  int
	wheel int // -1 up, 1 down, 0 for a click
}

// motion returns the direction of the wheel turn.
func (p pointer) motion() widget.Motion {
	if p.wheel < 0 {
		return widget.Up
	}
	return widget.Down
}

// doubleClick is the maximum time between two clicks on a cell that count as a double click.
const doubleClick = 400 * time.Millisecond

// clicked is the cell of the last click and its time.
type clicked struct {
	x, y int
	at   time.Time
}

// again records a click and reports whether this is the second click of a double click. A third click begins
// a new double click.
func (c *clicked) again(p pointer) bool {
	last := *c
	*c = clicked{p.x, p.y, widget.Now()}
	second := !last.at.IsZero() && last.x == p.x && last.y == p.y && c.at.Sub(last.at) <= doubleClick
	if second {
		*c = clicked{}
	}
	return second
}

// point handles a mouse action on whatever is drawn at its cell.
func (a *App) point(p pointer) {
	if p.wheel == 0 && a.chord != nil { // a click cancels a command that waits for a second key
		a.struck(widget.Key{Name: "esc"})
	}
	if a.dialog != nil {
		a.pointDialog(p)
		return
	}
	if p.wheel != 0 {
		a.wheel(p)
		return
	}
	if a.question != nil { // the typed answer refers to the screen, so a click must not change the screen
		return
	}
	second := a.clicked.again(p)
	m := a.rects()
	switch {
	case m[regionTabs].Holds(p.x, p.y):
		if s, ok := a.tabAt(p.x); ok {
			a.closeOverlay()
			a.goTo(s)
		}
	case a.over != nil, a.empty() != "":
	case m[regionDetail].Holds(p.x, p.y), m[regionDetailTitle].Holds(p.x, p.y):
		a.inDetail = true
	case m[regionList].Holds(p.x, p.y):
		a.inDetail = false
		a.clickView(p.x-m[regionList].X, p.y-m[regionList].Y, m[regionList].W, second)
	}
}

// wheel scrolls the pane under the pointer. In a view that shows steps side by side, it moves to the next
// step.
func (a *App) wheel(p pointer) {
	m, move, lines := a.rects(), a.moveView, view.WheelLines
	switch {
	case a.over != nil:
		move = a.over.text.Move
	case m[regionDetail].Holds(p.x, p.y), m[regionDetailTitle].Holds(p.x, p.y):
		move = a.detail.Move
	case !m[regionList].Holds(p.x, p.y) && !m[regionTitle].Holds(p.x, p.y):
		return
	default:
		lines = a.view().Scrolls()
	}
	for range lines {
		move(p.motion())
	}
}

// clickView selects what is drawn at a cell of the view, or opens it on a double click. A click on a
// column header sorts the table.
func (a *App) clickView(x, y, w int, second bool) {
	v := a.view()
	if v.PointAt(x, y, w) {
		if second {
			v.Open()
		}
		return
	}
	p := v.Pane()
	if p == nil {
		return
	}
	if y == p.Line {
		if name := p.ColumnAt(x); name != "" {
			p.SortBy(name)
		}
		return
	}
	if row := p.RowAt(y); row >= 0 {
		p.GoTo(row)
		if second {
			a.open()
		}
	}
}

// pointDialog selects a row of the dialog on a click and accepts it on a double click. The wheel moves
// through the rows.
func (a *App) pointDialog(p pointer) {
	r := a.dialogArea()
	switch {
	case !r.Holds(p.x, p.y):
	case p.wheel != 0:
		a.typedInDialog(widget.Key{Name: map[widget.Motion]string{
			widget.Up:   "up",
			widget.Down: "down",
		}[p.motion()]})
	default:
		second := a.clicked.again(p)
		if a.dialog.Choose(p.y-r.Y-1) && second { // the first line is the frame
			a.typedInDialog(widget.Key{Name: "enter"})
		}
	}
}
