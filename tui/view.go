package tui

import (
	"context"
	"maps"
	"slices"
	"strings"

	"gpuscope/trace"
	"gpuscope/trace/inspect"
	"gpuscope/trace/table"
	"gpuscope/tui/widget"
)

// views are the screens that keys choose, in the order of their tabs. A view is a row here and a file with
// its type: keys, tabs, help and docs/keys.md follow.
var views = []viewRow{
	{
		key: "1", name: "Step", needs: needsShown, new: newStepPage,
		doc: "What was generated, what a step cost and where its wall time went.",
	},
	{
		key: "2", name: "Dispatches", needs: needsShown, new: newDispatchPage, first: true,
		doc: "What ran, with which grid, how long, what to fix first, what changed.",
	},
	{
		key: "3", name: "Resize", needs: needsShown, new: newResizePage,
		doc: "Which change woke which operator, pass by pass.",
	},
	{
		key: "4", name: "Graph", needs: needsGraph, new: newGraphPage,
		doc: "Operators, values and memory: who makes and reads what, and the numbers inside.",
	},
	{
		key: "5", name: "Curves", needs: needsTrace, new: newCurvesPage,
		doc: "Time, grid, bytes and waste against the position or the length of a prompt.",
	},
	{key: "0", name: "Log", new: newLogPage, doc: "Everything said, compiled, refused."},
}

// inner are the screens that lie over a view until they are left. Keys of the view open them.
var inner = []viewRow{nearRow, valueRow}

// pushed is one of them, opened.
type pushed struct {
	row *viewRow
	view
}

// viewRow is a row of the table of views.
type viewRow struct {
	key  string
	name string
	doc  string // a sentence
	// why there is nothing to show yet, "" where there is; nil: it needs nothing
	needs func(*App) string
	new   func(*App) view //
	first bool            // it is what a person sees at first
}

// label names a view, and the key that chooses it where it has one.
func (r *viewRow) label() string {
	if r.key == "" {
		return r.name
	}
	return keyOf(r.name) + " " + r.name
}

// view is one of those screens. A view holds what a person did to it (cursor, folding, order, filter); what
// it shows comes from the snapshot, by jobs. Its methods are called by the event loop only.
type view interface {
	// load wants what there is to see in a snapshot, on a screen of w cells. It is called after every message
	// and must cost nothing where nothing changed.
	load(j *widget.Jobs, s snapshot, w int)
	// title says what the list shows, on a screen of w cells.
	title(w int) []table.Part
	// render draws into w by h cells: at most h lines of at most w cells.
	render(t *widget.Theme, g widget.Glyphs, w, h int, focused bool) []string
}

// What some views can do. Keys are bound to these, never to views by name.
type (
	mover interface{ Move(widget.Motion) }
	// partly shows a whole of which a part can be opened, unless it is known as a whole alone; it says why.
	partly interface {
		undivided() string
		zoomIn()
		zoomOut() bool
	}
	// stepper shows steps side by side: motions choose the step.
	stepper interface{ stepsBy(widget.Motion) int }
	// detailer has a pane with more about the selected row.
	detailer interface{ detail() detail }
	// speaker says which steps it speaks of: as many as the scope has, the one of them that is shown, or all
	// of the run.
	speaker interface{ takes() inspect.Takes }
	// abouter says itself what holds of the steps, in the line under the tabs; of other views it is what they
	// cost. It must cost nothing: what takes time is made by load's jobs.
	abouter interface{ about(s snapshot) table.Line }
	// lister has rows with a cursor, which open, sort and filter.
	lister interface{ pane() *widget.TablePane }
	// folder folds its rows in several ways.
	folder   interface{ refold() }
	filterer interface {
		filtered() string
		setFilter(string)
	}
	// whyer explains the selected row, or says in its text's none why there is nothing to explain; sourcer
	// shows the kernel of the dispatch under the cursor.
	whyer   interface{ why() (text, bool) }
	sourcer interface {
		source() (text, bool)
		selected() *inspect.Launch // the dispatch, nil for none
	}
	copier interface{ copied() string }
	// curved looks along one of two axes, at one of several quantities.
	curved interface {
		turn()
		redraw()
		widen(times float64) (why string) // draws more of the axis, or less
		// timed is the operator under the cursor and at which lengths to time it; why says why there is none.
		timed() (op trace.OpID, lengths []int, why string)
		showRoutes()
	}
	// opener opens the selected row itself, and says whether it did. backer leaves one level of its own.
	opener interface{ open() bool }
	backer interface{ back() bool }
	// nearer shows who makes, or who reads, what is selected.
	nearer interface{ near(consumers bool) }
	// switcher lists something else of the same, weigher marks its rows by something else.
	switcher interface{ nextList() }
	weigher  interface{ reweigh() }
	// stopper stops what it asked of the model, and says whether there was anything.
	stopper interface{ stopReading() bool }
	// turner goes to the next or the former of what it shows one at a time.
	turner interface{ turn(by int) }
	// pointed takes a click at a cell of what it drew in w cells, and says whether something is there.
	pointed interface{ pointAt(x, y, w int) bool }
	// eventful says what of all that happened it has something of.
	eventful interface{ has(e inspect.Event) bool }
	// jumper goes along a line to the next place where something changes, and says whether there is one.
	jumper interface{ jump(by int) bool }
)

// detail is what the pane of details shows. A job makes its lines, nil for none; of names what they are of
// wherever it is shown, title says it to a person.
type detail struct {
	of, title string
	lines     func(context.Context) ([]string, error)
}

// text is what a job makes to lie over a view, and what is said where there are no lines.
type text struct {
	of   func(context.Context) (page, error)
	none string
	code bool // its lines are not broken where they are too long
}

// page is a text that was made, and where keys go from it.
type page struct {
	title string
	lines []string
	marks [][]widget.Stretch // by line, nil for none
	// broken breaks a line to so many cells; nil: they stay as they are, and have marks.
	broken func(line string, w int) []string
	whole  string // what is copied; "": the lines
	// earlier and later are the same of another step, nil where there is none; folded is the same with more
	// or less in it.
	earlier, later, folded *text
	first, last            string // why there is no earlier one, or no later one
}

// ability is what a view must be able to do for an action to hold in it.
type ability struct {
	name string // of a section in docs/keys.md: "With rows"
	of   func(view) bool
}

// views are those that have it, as they are called.
func (can *ability) views(called func(*viewRow) string) (names []string) {
	for _, row := range slices.Concat(views, inner) {
		if can.of(row.new(&App{log: NewLog()})) {
			names = append(names, called(&row))
		}
	}
	return names
}

func is[T any](v view) bool {
	_, ok := v.(T)
	return ok
}

var (
	rowsOpen   = &ability{"Where there are rows", is[lister]}
	folds      = &ability{"Where rows fold in several ways", is[folder]}
	filters    = &ability{"Where rows can be filtered", is[filterer]}
	explains   = &ability{"Where rows can be explained", is[whyer]}
	stepping   = &ability{"Where steps stand side by side", is[stepper]}
	costs      = &ability{"Where rows can be left out of a step", is[coster]}
	dispatches = &ability{"With a dispatch under the cursor", is[sourcer]}
	parted     = &ability{"Where a part of a step opens", is[partly]}
	curves     = &ability{"With curves", is[curved]}
	openable   = &ability{"Where something opens", opensRows}
	graphs     = &ability{"With an operator or a value under the cursor", is[nearer]}
	switches   = &ability{"Where there are several lists", is[switcher]}
	abilities  = []*ability{
		openable, parted, rowsOpen, folds, filters, explains, stepping, costs, dispatches, curves, graphs,
		switches,
	}
)

func opensRows(v view) bool { return is[lister](v) || is[opener](v) }

// view is the current view, row what the table of views says of it.
func (a *App) view() view {
	if top := a.top(); top != nil {
		return top.view
	}
	return a.views[a.current]
}

func (a *App) row() *viewRow {
	if top := a.top(); top != nil {
		return top.row
	}
	return &views[a.current]
}

// top is what lies over the current view, nil where nothing does.
func (a *App) top() *pushed {
	if list := a.pushes[a.current]; len(list) > 0 {
		return &list[len(list)-1]
	}
	return nil
}

// push opens a view over the current one.
func (a *App) push(row *viewRow, v view) {
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
	names := []string{views[a.current].name}
	for _, p := range a.pushes[a.current] {
		names = append(names, p.row.name)
	}
	if len(names) == 1 {
		return ""
	}
	return strings.Join(names, " › ")
}

// empty says why the current view has nothing to show yet, "" where it has.
func (a *App) empty() string {
	if needs := a.row().needs; needs != nil {
		return needs(a)
	}
	return ""
}

// noRows says why there are no rows to do something with.
func noRows(a *App) string {
	if why := a.empty(); why != "" {
		return why
	}
	if l, ok := a.view().(lister); !ok || l.pane().Table == nil {
		return "there are no rows yet"
	}
	return ""
}

// nextMatch goes to the next row that a filter finds, or the one before.
func (a *App) nextMatch(by int) {
	if why := a.table().NextMatch(by); why != "" {
		a.remark(keyed(why))
	}
}

// table is the table of the current view.
func (a *App) table() *widget.TablePane { return a.view().(lister).pane() }

// reload wants what is newest for what is on the screen.
func (a *App) reload() {
	if a.over != nil {
		a.over.lay(a.w)
	}
	s := a.snapshot()
	a.loadTook(s)
	v := a.view()
	v.load(a.jobs, s, a.w)
	d, ok := v.(detailer)
	if !ok {
		return
	}
	more := d.detail()
	a.detailTitle = more.title
	if more.lines == nil {
		a.detailTask.Clear(a.jobs)
		a.detail, a.detailOf = widget.TextPane{}, more.of
		return
	}
	w := a.rects()[regionDetail].W - 2
	key := detailKey{view: a.current, width: w, of: more.of}
	if l, ok := v.(lister); ok {
		key.listing = l.pane().Listings
	}
	a.detailTask.Want(a.jobs, key, func(ctx context.Context) ([]string, error) {
		made, err := more.lines(ctx)
		var out []string
		for _, l := range made {
			out = append(out, wrapHanging(l, w)...)
		}
		return out, err
	}, func(lines []string) {
		a.detail.Load(lines, nil)
		if a.detailOf != more.of {
			a.detailOf, a.detail.X = more.of, 0
			a.detail.GoTo(0)
		}
	})
}

// detailKey is what the lines of the detail depend on.
type detailKey struct {
	view, listing, width int
	of                   string
}

// widen draws so many times as much of the axis of curves.
func (a *App) widen(times float64) {
	if why := a.view().(curved).widen(times); why != "" {
		a.remark(why)
	}
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

// stopReading stops what the view asked of the model.
func (a *App) stopReading() bool {
	v, ok := a.view().(stopper)
	return ok && v.stopReading()
}

// turn goes to the next or the former of what a view shows one at a time, else of what happened in the run.
func (a *App) turn(by int) {
	if v, ok := a.view().(turner); ok {
		v.turn(by)
		return
	}
	if v, ok := a.view().(jumper); ok {
		if !v.jump(by) {
			a.remark("nothing more of this row changes that way")
		}
		return
	}
	a.nextEvent(by)
}

func (a *App) Move(m widget.Motion) {
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
func (a *App) moveView(m widget.Motion) {
	switch v := a.view().(type) {
	case stepper:
		if by := v.stepsBy(m); by != 0 && needsTrace(a) == "" {
			a.showStep(by)
		}
	case mover:
		v.Move(m)
	}
}

func (a *App) open() {
	if a.inDetail {
		a.inDetail = false
		return
	}
	if o, ok := a.view().(opener); ok && o.open() {
		return
	}
	if l, ok := a.view().(lister); !ok || !l.pane().Toggle() {
		a.nextPane()
	}
}

// onePane says why there is no other pane to go to, or to leave out.
func onePane(a *App) string {
	if !is[detailer](a.view()) {
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
	return keyed("one pane has the screen; {zoom} shows both")
}

func zoomOf(detail bool) zoom {
	if detail {
		return zoomDetail
	}
	return zoomList
}

// backOut leaves one level.
func (a *App) backOut() {
	f, filters := a.view().(filterer)
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
	case filters && f.filtered() != "":
		f.setFilter("")
	case a.zooms[a.current] != zoomNone:
		a.zooms[a.current] = zoomNone
	default:
		b, backs := a.view().(backer)
		p, parts := a.view().(partly)
		switch {
		case backs && b.back(), a.pop():
		case parts:
			p.zoomOut()
		}
	}
}
