package tui

import (
	"gpuscope/trace"
	"gpuscope/trace/table"
)

// view is one of the screens that the keys 1 to 5 and 0 choose. A view holds what a person did to it (cursor,
// folding, order, filter); what it shows comes from the snapshot. Its methods are called by the event loop
// only.
type view interface {
	name() string
	// load takes a newer snapshot, or one of another step.
	load(snapshot)
	// title says what the list shows, on a screen of w cells.
	title(w int) []table.Part
	// render draws into w by h cells: at most h lines of at most w cells.
	render(t *theme, g glyphs, w, h int, focused bool) []string
	move(motion)
}

// What some views can do.
type (
	// detailer has a pane with more about the selected row.
	detailer interface {
		// about names what the detail is of; it changes when the detail does.
		about() string
		detail(w int) []string
	}
	filterer interface {
		filtered() string
		setFilter(string)
	}
	tabler interface{ pane() *tablePane }
	// selector has a selected dispatch.
	selector interface {
		selected() (trace.DispatchID, bool)
	}
)

// table is the table of the current view.
func (a *App) table() *tablePane { return a.views[a.current].(tabler).pane() }

// reload hands the current view what is newest.
func (a *App) reload() {
	a.views[a.current].load(a.snapshot())
	if d, ok := a.views[a.current].(detailer); ok {
		r := a.rects()[regionDetail]
		if key := (detailKey{a.current, a.version, r.w, d.about()}); key != a.detailOf {
			moved := key.about != a.detailOf.about
			a.detailOf = key
			a.detail.load(d.detail(r.w - 2))
			if moved {
				a.detail.first, a.detail.x = 0, 0
			}
		}
	}
}

// detailKey is what the lines of the detail depend on.
type detailKey struct {
	view    scope
	version int
	width   int
	about   string
}

func (a *App) goTo(s scope) {
	if s == a.current {
		return
	}
	a.previous, a.current = a.current, s
	a.inDetail = false
}

func (a *App) move(m motion) {
	switch {
	case a.over != nil:
		a.over.text.move(m)
	case a.inDetail:
		a.detail.move(m)
	case a.current == stepView:
		if by, ok := stepsBy[m]; ok && needsTrace(a) == "" {
			a.showStep(by)
		}
	default:
		a.views[a.current].move(m)
	}
}

// stepsBy is how many steps a motion goes in the Step view.
var stepsBy = map[motion]int{
	left: -1, up: -1, right: 1, down: 1, halfUp: -5, halfDown: 5, pageUp: -10, pageDown: 10, top: -1 << 30,
	bottom: 1 << 30,
}

func (a *App) open() {
	if a.inDetail {
		a.inDetail = false
		return
	}
	if !a.table().toggle() {
		a.nextPane()
	}
}

func (a *App) nextPane() {
	if _, ok := a.views[a.current].(detailer); !ok {
		return
	}
	a.inDetail = !a.inDetail
	if z := a.zooms[a.current]; z != zoomNone {
		a.zooms[a.current] = zoomOf(a.inDetail)
	}
}

func (a *App) toggleZoom() {
	if a.zooms[a.current] != zoomNone {
		a.zooms[a.current] = zoomNone
		return
	}
	a.zooms[a.current] = zoomOf(a.inDetail)
}

func zoomOf(detail bool) zoom {
	if detail {
		return zoomDetail
	}
	return zoomList
}

// backOut leaves one level.
func (a *App) backOut() {
	f, filters := a.views[a.current].(filterer)
	switch {
	case a.failure != "":
		a.failure = ""
	case a.inDetail:
		a.inDetail = false
		if a.zooms[a.current] != zoomNone {
			a.zooms[a.current] = zoomNone
		}
	case filters && f.filtered() != "":
		f.setFilter("")
	case a.zooms[a.current] != zoomNone:
		a.zooms[a.current] = zoomNone
	}
}

// point does what the mouse did.
func (a *App) point(p pointer) {
	if a.over != nil {
		for range 3 {
			if p.wheel != 0 {
				a.over.text.move(map[int]motion{-1: up, 1: down}[p.wheel])
			}
		}
		return
	}
	m := a.rects()
	inside := func(r region) bool {
		q, ok := m[r]
		return ok && p.x >= q.x && p.x < q.x+q.w && p.y >= q.y && p.y < q.y+q.h
	}
	switch {
	case p.wheel != 0:
		was := a.inDetail
		a.inDetail = inside(regionDetail)
		for range 3 {
			a.move(map[int]motion{-1: up, 1: down}[p.wheel])
		}
		a.inDetail = was
	case inside(regionTabs):
		if s, ok := a.tabAt(p.x); ok {
			a.goTo(s)
		}
	case inside(regionDetail), inside(regionDetailTitle):
		a.inDetail = true
	case inside(regionList):
		a.inDetail = false
		a.clickList(p.x-m[regionList].x, p.y-m[regionList].y)
	}
}

// clickList selects the row at a cell of the list, opens it when it is selected already, and sorts by the
// column of a header.
func (a *App) clickList(x, y int) {
	t, ok := a.views[a.current].(tabler)
	if !ok {
		return
	}
	p := t.pane()
	if y == 0 {
		if name := p.columnAt(x); name != "" {
			p.sortBy(name)
		}
		return
	}
	switch row := p.rowAt(y); {
	case row < 0:
	case row == p.cursor:
		p.toggle()
	default:
		p.goTo(row)
	}
}
