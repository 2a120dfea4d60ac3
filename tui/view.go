package tui

import (
	"context"
	"maps"
	"strings"

	"gpuscope/session"
	"gpuscope/tui/command"
	"gpuscope/tui/view"
	"gpuscope/tui/widget"
)

// stage has the views, which of them has the screen, and how the screen is split.
type stage struct {
	views []view.View // in the order of the table of views
	// pushes are what lies over each view.
	pushes            map[int][]pushed
	current, previous int    // of views
	onLeave           func() // is called when another view comes
	zooms             map[int]zoom
	split             map[int]split
	inDetail          bool // the detail has the focus
	detail            widget.TextPane
	detailOf          string
	detailTitle       string
	detailTask        widget.Task[detailKey, []string]
}

func newStage() *stage {
	return &stage{zooms: map[int]zoom{}, split: map[int]split{}, pushes: map[int][]pushed{}}
}

// pushed is a view that lies over another.
type pushed struct {
	row *view.Row
	view.View
}

// view is the current view, row what the table of views says of it.
func (st *stage) view() view.View {
	if top := st.top(); top != nil {
		return top.View
	}
	return st.views[st.current]
}

func (st *stage) row() *view.Row {
	if top := st.top(); top != nil {
		return top.row
	}
	return &view.Views[st.current]
}

// top is what lies over the current view, nil where nothing does.
func (st *stage) top() *pushed {
	if list := st.pushes[st.current]; len(list) > 0 {
		return &list[len(list)-1]
	}
	return nil
}

// push opens a view over the current one.
func (st *stage) push(row *view.Row, v view.View) {
	st.pushes[st.current] = append(st.pushes[st.current], pushed{row, v})
	st.inDetail = false
}

// pop leaves the view that lies over another, and says whether there was one.
func (st *stage) pop() bool {
	list := st.pushes[st.current]
	if len(list) == 0 {
		return false
	}
	st.pushes[st.current] = list[:len(list)-1]
	st.inDetail = false
	return true
}

// crumbs name the way to what is shown, "" for a view itself.
func (st *stage) crumbs() string {
	names := []string{view.Views[st.current].Name}
	for _, p := range st.pushes[st.current] {
		names = append(names, p.row.Name)
	}
	if len(names) == 1 {
		return ""
	}
	return strings.Join(names, " › ")
}

// empty says why the current view has nothing to show yet, "" where it has.
func (a *App) empty() string {
	return a.lacks(a.row().Needs)
}

// noRows says why there are no rows to do something with.
func (a *App) noRows() string {
	if why := a.empty(); why != "" {
		return why
	}
	if rows := a.view().Pane(); rows == nil || rows.Table == nil {
		return "no rows yet"
	}
	return ""
}

// nextMatch goes to the next row that a filter finds, or the one before.
func (a *App) nextMatch(by int) {
	if why := a.table().NextMatch(by); why != "" {
		a.remark(command.Keyed(why))
	}
}

// table is the table of the current view.
func (st *stage) table() *widget.TablePane { return st.view().Pane() }

// reload wants what is newest for what is on the screen.
func (a *App) reload() {
	if a.over != nil {
		a.over.lay(a.w)
	}
	s := a.snapshot()
	a.loadTook(s)
	v := a.view()
	v.Load(a.jobs, s, a.w)
	if !v.Detailed() {
		return
	}
	more := v.Detail()
	a.detailTitle = more.Title
	if more.Lines == nil {
		a.detailTask.Clear(a.jobs)
		a.detail, a.detailOf = widget.TextPane{}, more.Of
		return
	}
	w := a.rects()[regionDetail].W - 2
	key := detailKey{view: a.current, width: w, of: more.Of}
	if rows := v.Pane(); rows != nil {
		key.listing = rows.Listings
	}
	a.detailTask.Want(a.jobs, key, func(ctx context.Context) ([]string, error) {
		made, err := more.Lines(ctx)
		var out []string
		for _, l := range made {
			out = append(out, view.WrapHanging(l, w)...)
		}
		return out, err
	}, func(lines []string) {
		a.detail.Load(lines, nil)
		if a.detailOf != more.Of {
			a.detailOf, a.detail.X = more.Of, 0
			a.detail.GoTo(0)
		}
	})
}

// detailKey is what the lines of the detail depend on.
type detailKey struct {
	view, listing, width int
	of                   string
}

func (st *stage) goTo(view int) {
	if view == st.current { // to the view itself
		for st.pop() {
		}
		return
	}
	st.previous, st.current = st.current, view
	st.inDetail = false
	st.onLeave()
}

// turn goes to the next or the former of what a view shows one at a time, else of what happened in the run.
func (a *App) turn(by int) {
	if !a.view().Turn(by) {
		a.nextEvent(by)
	}
}

func (a *App) move(m widget.Motion) {
	switch {
	case a.over != nil:
		a.over.text.Move(m)
	case a.inDetail:
		a.detail.Move(m)
	default:
		a.moveView(m)
	}
}

// moveView moves in what the view shows, wherever the focus is.
func (a *App) moveView(m widget.Motion) { a.view().Move(m) }

func (a *App) open() {
	if a.inDetail {
		a.inDetail = false
		return
	}
	if !a.view().Open() {
		a.nextPane()
	}
}

// onePane says why there is no other pane to go to, or to leave out.
func (st *stage) onePane() string {
	if !st.view().Detailed() {
		return "this view has one pane"
	}
	return ""
}

func (st *stage) nextPane() {
	if st.onePane() != "" {
		return
	}
	st.inDetail = !st.inDetail
	if z := st.zooms[st.current]; z != zoomNone {
		st.zooms[st.current] = zoomOf(st.inDetail)
	}
}

func (st *stage) toggleZoom() {
	if st.zooms[st.current] != zoomNone {
		st.zooms[st.current] = zoomNone
		return
	}
	st.zooms[st.current] = zoomOf(st.inDetail)
}

// moveSplit moves the border between list and detail, where there is room, and remembers it for this view.
// It never stands beyond what is shown, so that the way back is as long as the way there.
func (a *App) moveSplit(by int) {
	before, was := a.rects(), a.split[a.current]
	s := was
	if _, side := before[regionDivider]; side {
		s.columns += 4 * by
	} else {
		s.rows += by
	}
	if a.split[a.current] = s; maps.Equal(before, a.rects()) {
		a.split[a.current] = was
		a.remark("the split is at its limit")
	}
}

// cannotSplit says why there is no split to move.
func (a *App) cannotSplit() string {
	if why := a.onePane(); why != "" || a.zooms[a.current] == zoomNone {
		return why
	}
	return command.Keyed("only one pane is shown; {zoom} shows both")
}

func zoomOf(detail bool) zoom {
	if detail {
		return zoomDetail
	}
	return zoomList
}

// backOut leaves one level.
func (a *App) backOut() {
	f := a.view().Filter()
	switch {
	case a.overTask.Cancel != nil:
		a.overTask.Drop(a.jobs)
	case a.failure != "":
		a.failure = ""
	case a.inDetail:
		a.inDetail = false
		if a.zooms[a.current] != zoomNone {
			a.zooms[a.current] = zoomNone
		}
	case f != nil && f.Text != "":
		f.Set("")
	case a.zooms[a.current] != zoomNone:
		a.zooms[a.current] = zoomNone
	default:
		if !a.view().Back() {
			a.pop()
		}
	}
}

// hosting is the program as its views see it.
type hosting struct{ a *App }

func (h hosting) Size() (cols, rows int) {
	r := h.a.rects()[regionList]
	return r.W, r.H
}
func (h hosting) Remark(text string) { h.a.remark(text) }
func (h hosting) ShowStep(by int) {
	if h.a.needsTrace() == "" {
		h.a.showStep(by)
	}
}
func (h hosting) LookAt(step int)                 { h.a.lookAt(step) }
func (h hosting) Push(row *view.Row, v view.View) { h.a.push(row, v) }
func (h hosting) Show(t view.Text)                { h.a.look(t) }
func (h hosting) Do(c session.Command)            { h.a.command(c) }
