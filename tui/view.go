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

// pushed is one of them, opened.
type pushed struct {
	row *view.ViewRow
	view.View
}

// view is the current view, row what the table of views says of it.
func (a *App) view() view.View {
	if top := a.top(); top != nil {
		return top.View
	}
	return a.views[a.current]
}

func (a *App) row() *view.ViewRow {
	if top := a.top(); top != nil {
		return top.row
	}
	return &view.Views[a.current]
}

// top is what lies over the current view, nil where nothing does.
func (a *App) top() *pushed {
	if list := a.pushes[a.current]; len(list) > 0 {
		return &list[len(list)-1]
	}
	return nil
}

// push opens a view over the current one.
func (a *App) push(row *view.ViewRow, v view.View) {
	a.pushes[a.current] = append(a.pushes[a.current], pushed{row, v})
	a.inDetail = false
}

// pop leaves the view that lies over another, and says whether there was one.
func (a *App) pop() bool {
	list := a.pushes[a.current]
	if len(list) == 0 {
		return false
	}
	a.pushes[a.current] = list[:len(list)-1]
	a.inDetail = false
	return true
}

// crumbs name the way to what is shown, "" for a view itself.
func (a *App) crumbs() string {
	names := []string{view.Views[a.current].Name}
	for _, p := range a.pushes[a.current] {
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
func noRows(a *App) string {
	if why := a.empty(); why != "" {
		return why
	}
	if rows := a.view().Pane(); rows == nil || rows.Table == nil {
		return "there are no rows yet"
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
func (a *App) table() *widget.TablePane { return a.view().Pane() }

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

func (a *App) goTo(view int) {
	if view == a.current { // to the view itself
		for a.pop() {
		}
		return
	}
	a.previous, a.current = a.current, view
	a.inDetail = false
	a.overTask.Drop(a.jobs)
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
func onePane(a *App) string {
	if !a.view().Detailed() {
		return "this view has one pane"
	}
	return ""
}

func (a *App) nextPane() {
	if onePane(a) != "" {
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
		a.remark("the split goes no further")
	}
}

// cannotSplit says why there is no split to move.
func cannotSplit(a *App) string {
	if why := onePane(a); why != "" || a.zooms[a.current] == zoomNone {
		return why
	}
	return command.Keyed("one pane has the screen; {zoom} shows both")
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
	if needsTrace(h.a) == "" {
		h.a.showStep(by)
	}
}
func (h hosting) LookAt(step int)                     { h.a.lookAt(step) }
func (h hosting) Push(row *view.ViewRow, v view.View) { h.a.push(row, v) }
func (h hosting) Show(t view.Text)                    { h.a.look(t) }
func (h hosting) Do(c session.Command)                { h.a.command(c) }
