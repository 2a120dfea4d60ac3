package tui

import (
	"context"
	"strings"

	"gpuscope/session"
	"gpuscope/trace/inspect"
	"gpuscope/trace/table"
	"gpuscope/tui/command"
	"gpuscope/tui/widget"
)

// views are the screens that keys choose, in the order of their tabs. A view is a row here and a file with
// its type: keys, tabs, help and docs/keys.md follow.
var views = []viewRow{
	{
		key: "1", name: "Step", needs: command.Shown, new: newStepPage,
		doc: "What was generated, what a step cost and where its wall time went.",
	},
	{
		key: "2", name: "Dispatches", needs: command.Shown, new: newDispatchPage, first: true,
		doc: "What ran, with which grid, how long, what to fix first, what changed.",
	},
	{
		key: "3", name: "Resize", needs: command.Shown, new: newResizePage,
		doc: "Which change woke which operator, pass by pass.",
	},
	{
		key: "4", name: "Graph", needs: command.Opened, new: newGraphPage,
		doc: "Operators, values and memory: who makes and reads what, and the numbers inside.",
	},
	{
		key: "5", name: "Curves", needs: command.Steps, new: newCurvesPage,
		doc: "Time, grid, bytes and waste against the position or the length of a prompt.",
	},
	{key: "0", name: "Log", new: newLogPage, doc: "Everything said, compiled, refused."},
}

// inner are the screens that lie over a view until they are left. Commands of the view open them.
var inner = []*viewRow{&nearRow, &valueRow}

// viewRow is a row of the table of views.
type viewRow struct {
	key   string
	name  string
	doc   string        // a sentence
	needs command.Needs // before there is something to show
	new   func(host, *widget.Log) View
	first bool // it is what a person sees at first
}

// label names a view, and the key that chooses it where it has one.
func (r *viewRow) label() string {
	if r.key == "" {
		return r.name
	}
	return command.KeyOf(r.name) + " " + r.name
}

// offers says whether the views of a row offer a command.
func (r *viewRow) offers(name string) bool {
	return offered(r.new(nil, widget.NewLog()), name)
}

// offering are the views that offer a command, as they are called.
func offering(name string, called func(*viewRow) string) (names []string) {
	for i := range views {
		if views[i].offers(name) {
			names = append(names, called(&views[i]))
		}
	}
	for _, row := range inner {
		if row.offers(name) {
			names = append(names, called(row))
		}
	}
	return names
}

// offered says whether a view offers a command.
func offered(v View, name string) bool { return actionOf(v, name) != nil }

// actionOf is what a command does in a view, nil where the view does not offer it.
func actionOf(v View, name string) *command.Action {
	list := v.actions()
	for i := range list {
		if list[i].Name == name {
			return &list[i]
		}
	}
	return nil
}

// host is the program as a view sees it.
type host interface {
	Size() (w, h int)          // cells that the view has for its list
	Remark(text string)        // says why a key does nothing
	ShowStep(by int)           // shows the recorded step so many further on
	LookAt(step int)           // shows a recorded step
	Push(row *viewRow, v View) // opens a view over this one
	Show(t text)               // shows a text over the view, once it is made
	Do(c session.Command)      // sends a command to the session
}

// View is one of the screens. A view holds what a person did to it (cursor, folding, order, filter); what it
// shows comes from the snapshot, by jobs. Its methods are called by the event loop only. A view embeds basics
// and has the methods of what it can do.
type View interface {
	// load wants what there is to see in a snapshot, on a screen of w cells. It is called after every message
	// and must cost nothing where nothing changed.
	load(j *widget.Jobs, s snapshot, w int)
	// title says what the list shows, on a screen of w cells.
	title(w int) []table.Part
	// render draws into w by h cells: at most h lines of at most w cells.
	render(t *widget.Theme, g widget.Glyphs, w, h int, focused bool) []string
	// actions are the commands that the view offers besides those that every view has.
	actions() []command.Action
	// move moves the cursor.
	move(m widget.Motion)
	// takes says which steps the view shows: as many as the selection has, the last of them, or the whole run.
	takes() inspect.Takes
	// pane has the rows, with a cursor; nil where there are none.
	pane() *widget.TablePane
	// detailed says that the view has a pane with more about the selected row, detail is what it shows.
	detailed() bool
	detail() *detail
	// about is the line under the tabs, false where that is what the steps cost. It must cost nothing.
	about(s snapshot) (table.Line, bool)
	// filter is how lines are filtered; nil where they cannot be.
	filter() *filter
	// copied is the selected row as text.
	copied() string
	// open opens the selected row, back leaves one level of the view's own; false where there is none.
	open() bool
	back() bool
	// turn goes to the next or the former of what the view shows one at a time; false where there is no such
	// thing: then it is what happened in the run.
	turn(by int) bool
	// pointAt takes a click at a cell of what was drawn in w cells; false where nothing is there.
	pointAt(x, y, w int) bool
	// has says whether an event of the run is of interest here; nil: all are.
	has() func(inspect.Event) bool
	// stop stops what the view asked of the model; false where there was nothing.
	stop() bool
	// launch is the dispatch under the cursor, nil for none.
	launch() *inspect.Launch
	// look is what undo remembers besides rows, a comparable value, and restore takes it.
	look() any
	restore(look any)
	// scrolls is how many lines a turn of the wheel goes.
	scrolls() int
}

// filter is the filter of a view.
type filter struct {
	text string
	set  func(string)
}

// wheelLines is how many lines a turn of the wheel scrolls.
const wheelLines = 3

// basics are the methods of a view that can do nothing.
type basics struct{}

func (basics) actions() []command.Action         { return nil }
func (basics) move(widget.Motion)                {}
func (basics) takes() inspect.Takes              { return inspect.NoSteps }
func (basics) pane() *widget.TablePane           { return nil }
func (basics) detailed() bool                    { return false }
func (basics) detail() *detail                   { return nil }
func (basics) about(snapshot) (table.Line, bool) { return table.Line{}, false }
func (basics) filter() *filter                   { return nil }
func (basics) copied() string                    { return "" }
func (basics) open() bool                        { return false }
func (basics) back() bool                        { return false }
func (basics) turn(int) bool                     { return false }
func (basics) pointAt(int, int, int) bool        { return false }
func (basics) has() func(inspect.Event) bool     { return nil }
func (basics) stop() bool                        { return false }
func (basics) launch() *inspect.Launch           { return nil }
func (basics) look() any                         { return nil }
func (basics) restore(any)                       {}
func (basics) scrolls() int                      { return wheelLines }

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

// wrapHanging breaks a line of a detail to w cells; what follows stands under what is behind the label.
func wrapHanging(l string, w int) []string {
	const deep = inspect.DetailLabel
	switch {
	case len(l) > deep && l[deep-1] == ' ' && !strings.Contains(strings.TrimRight(l[:deep], " "), " "):
		return widget.WrapUnder(l, w, deep, deep)
	case strings.HasPrefix(l, " "):
		return widget.WrapIndented(l, w)
	}
	return widget.WrapText(l, w)
}

// mostShown is how many characters of an error are shown; the log has it whole.
const mostShown = 1000
