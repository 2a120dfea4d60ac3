package tui

import (
	"context"
	"maps"
	"slices"
	"strings"

	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/tui/command"
	"gpuscope/tui/view"
	"gpuscope/tui/view/all"
	"gpuscope/tui/view/roof"
	"gpuscope/tui/widget"
)

// stage holds the views, which view is on the screen, and how the screen is split.
type stage struct {
	views []view.View // in the order of all.Views
	// pushes holds, by the index of a view, the views that were opened on top of that view.
	pushes            map[int][]pushed
	current, previous int    // indices of views
	onLeave           func() // called when the user switches to another view
	zooms             map[int]zoom
	split             map[int]split
	inDetail          bool // the detail pane has the focus
	detail            widget.TextPane
	detailOf          string
	detailTitle       string
	detailTask        widget.Task[detailKey, []string]
}

func newStage() *stage {
	return &stage{zooms: map[int]zoom{}, split: map[int]split{}, pushes: map[int][]pushed{}}
}

// pushed is a view that was opened on top of another one.
type pushed struct {
	row *view.Row
	view.View
}

// view returns the view on the screen; row returns its entry in the table of views.
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
	return &all.Views[st.current]
}

// top returns the view that was opened last on top of the current view, or nil if there is none.
func (st *stage) top() *pushed {
	if list := st.pushes[st.current]; len(list) > 0 {
		return &list[len(list)-1]
	}
	return nil
}

// push opens a view on top of the current one.
func (st *stage) push(row *view.Row, v view.View) {
	st.pushes[st.current] = append(st.pushes[st.current], pushed{row, v})
	st.inDetail = false
}

// pop closes the topmost pushed view and reports whether a view was closed.
func (st *stage) pop() bool {
	list := st.pushes[st.current]
	if len(list) == 0 {
		return false
	}
	st.pushes[st.current] = list[:len(list)-1]
	st.inDetail = false
	return true
}

// crumbs returns the path of views to the shown view, or "" if no view is pushed.
func (st *stage) crumbs() string {
	names := []string{all.Views[st.current].Name}
	for _, p := range st.pushes[st.current] {
		names = append(names, p.row.Name)
	}
	if len(names) == 1 {
		return ""
	}
	return strings.Join(names, " › ")
}

// empty returns the reason that the current view has nothing to show yet, or "" if it has content.
func (a *App) empty() string {
	return a.lacks(a.row().Needs)
}

// noRows returns the reason that the current view has no rows, or "" if it has rows.
func (a *App) noRows() string {
	if why := a.empty(); why != "" {
		return why
	}
	if rows := a.view().Pane(); rows == nil || rows.Table == nil {
		return "no rows yet"
	}
	return ""
}

// nextMatch moves to the next row that matches the filter, or to the previous match if `by` is negative.
func (a *App) nextMatch(by int) {
	if why := a.table().NextMatch(by); why != "" {
		a.remark(command.Keyed(why))
	}
}

func (st *stage) table() *widget.TablePane { return st.view().Pane() }

// reload requests the newest data for everything on the screen.
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

// detailKey identifies the lines of the detail pane: their data and their width.
type detailKey struct {
	view, listing, width int
	of                   string
}

func (st *stage) goTo(view int) {
	if view == st.current { // close all views that are opened on top of it
		for st.pop() {
		}
		return
	}
	st.previous, st.current = st.current, view
	st.inDetail = false
	st.onLeave()
}

// showRoofline opens the roofline on top of Curves.
func (a *App) showRoofline() {
	if a.row() == &roof.Row {
		return
	}
	i := slices.IndexFunc(all.Views, func(r view.Row) bool { return r.Name == "Curves" })
	if a.current != i {
		a.goTo(i)
	}
	a.push(&roof.Row, roof.New(hosting{a}))
}

// turn moves to the next item of a view that shows one item at a time. In other views, it moves to the next
// event of the run. If `by` is negative, turn moves to the previous item or event.
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

// moveView moves the cursor of the view, even if the detail pane has the focus.
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

// onePane returns the reason that there is no second pane, or "" if there is one.
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

// moveSplit moves the border between list and detail, if there is room, and stores the position for this
// view.
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
		a.remark("the panes cannot be resized further")
	}
}

// cannotSplit returns the reason that the border between the panes cannot be moved, or "" if it can.
func (a *App) cannotSplit() string {
	if why := a.onePane(); why != "" || a.zooms[a.current] == zoomNone {
		return why
	}
	return command.Keyed("only one pane is shown; press {zoom} to show both")
}

func zoomOf(detail bool) zoom {
	if detail {
		return zoomDetail
	}
	return zoomList
}

// backOut closes or resets one thing: a pending overlay, an error, the focus, the filter, the zoom or a
// pushed view.
func (a *App) backOut() {
	f := a.view().Filter()
	switch {
	case a.overTask.Cancel != nil:
		a.overTask.Drop(a.jobs)
	case a.job != nil && a.job.command.Kind == session.Cost && !a.job.cancelled:
		a.stop()
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

// hosting implements view.Host, through which views use App.
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
func (h hosting) Pop()                            { h.a.pop() }
func (h hosting) Show(t view.Text)                { h.a.look(t) }
func (h hosting) Do(c session.Command)            { h.a.command(c) }
func (h hosting) Hint() string                    { return h.a.hint() }
func (h hosting) Ask(v view.Question) {
	q := &question{label: v.Label, hint: v.Hint, take: v.Take}
	if v.Live != nil {
		q.live = func(text string) { q.label = v.Live(text) }
	}
	q.line.Suggest(v.Suggest)
	h.a.ask(q)
}

func (h hosting) ShowDispatch(step int, id trace.DispatchID) {
	h.a.lookAt(step)
	h.a.goTo(dispatches)
	h.a.table().Seek(id)
}

func (h hosting) ChosenDispatch() (id trace.DispatchID, ok bool) {
	id, ok = h.a.views[dispatches].Pane().Chosen().(trace.DispatchID)
	return id, ok
}

const dispatches = 1 // index of the view Dispatches
