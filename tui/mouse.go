package tui

import (
	"time"

	"gpuscope/tui/view"
	"gpuscope/tui/widget"
)

// mouseDoc is what the mouse does, for the help and docs/reference/keys.md.
var mouseDoc = [][2]string{
	{"wheel", "Scroll the pane under the pointer: list, detail, text over the view, or dialog."},
	{"click", "Select a row, an operator, a step of the strip, a position in a chart, or a tab."},
	{"double click", "Open the row, like enter."},
	{"header", "Sort the table by this column; click again to reverse the order."},
	{"shift", "Hold shift to select text with the terminal's own selection."},
}

// pointer is what a mouse did: a wheel turn or a click, at a cell.
type pointer struct {
	x, y  int
	wheel int // -1 up, 1 down, 0 a click
}

// motion is the way that the wheel turns.
func (p pointer) motion() widget.Motion {
	if p.wheel < 0 {
		return widget.Up
	}
	return widget.Down
}

// doubleClick is the time in which a second click on a cell opens what is there.
const doubleClick = 400 * time.Millisecond

// clicked is where the mouse was clicked last, and when.
type clicked struct {
	x, y int
	at   time.Time
}

// again says whether a click is the second on its cell. A third begins anew.
func (c *clicked) again(p pointer) bool {
	last := *c
	*c = clicked{p.x, p.y, widget.Now()}
	second := !last.at.IsZero() && last.x == p.x && last.y == p.y && c.at.Sub(last.at) <= doubleClick
	if second {
		*c = clicked{}
	}
	return second
}

// point does what the mouse did, to what is drawn where it points.
func (a *App) point(p pointer) {
	if p.wheel == 0 && a.chord != nil { // it was not the key that was waited for
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
	if a.question != nil { // what is typed is for what is on the screen
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

// wheel scrolls the pane under the pointer. Where steps stand side by side it goes to the next one.
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

// clickView selects what is at a cell of the view, and opens it with the second click. A header sorts its
// table.
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

// pointDialog chooses a row of the dialog with a click, and takes it with the second. The wheel goes through
// the rows.
func (a *App) pointDialog(p pointer) {
	r, _ := a.dialogLines()
	switch {
	case !r.Holds(p.x, p.y):
	case p.wheel != 0:
		a.typedInDialog(widget.Key{Name: map[widget.Motion]string{
			widget.Up:   "up",
			widget.Down: "down",
		}[p.motion()]})
	default:
		second := a.clicked.again(p)
		if a.dialog.Choose(p.y-r.Y-1) && second { // under its rule
			a.typedInDialog(widget.Key{Name: "enter"})
		}
	}
}
