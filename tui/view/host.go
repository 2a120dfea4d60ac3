// Package view has the screens of the terminal program, a file each. A view holds what a person did to it and
// draws what a Snapshot has; it knows the program through Host and returns what its commands do.
package view

import (
	"context"
	"strings"

	"gpuscope/session"
	"gpuscope/trace/analyze"
	"gpuscope/trace/report"
	"gpuscope/trace/table"
	"gpuscope/tui/command"
	"gpuscope/tui/widget"
)

// Views are the screens that keys choose, in the order of their tabs. A view is a row here and a file with
// its type: keys, tabs, help and docs/reference/keys.md follow.
var Views = []Row{
	{
		Key: "1", Name: "Step", Needs: command.Shown, New: newStepPage,
		Doc: "What was generated, how long the step took, and where the time went.",
	},
	{
		Key: "2", Name: "Dispatches", Needs: command.Shown, New: newDispatchPage, First: true,
		Doc: "What ran, with which grid, how long it took, what changed, and what to fix first.",
	},
	{
		Key: "3", Name: "Resize", Needs: command.Shown, New: newResizePage,
		Doc: "Which change re-planned which operator, pass by pass.",
	},
	{
		Key: "4", Name: "Graph", Needs: command.Opened, New: newGraphPage,
		Doc: "Operators, values and memory: producers, consumers and contents.",
	},
	{
		Key: "5", Name: "Curves", Needs: command.Steps, New: newCurvesPage,
		Doc: "Time, grid, bytes and waste as functions of the position or the number of prompt tokens.",
	},
	{Key: "0", Name: "Log", New: newLogPage, Doc: "All messages: notes, compiled kernels, warnings and errors."},
}

// inner are the screens that lie over a view until they are left. Commands of the view open them.
var inner = []*Row{&nearRow, &valueRow}

// Row is a row of the table of views.
type Row struct {
	Key   string
	Name  string
	Doc   string        // a sentence
	Needs command.Needs // before there is something to show
	New   func(Host, *widget.Log) View
	First bool // it is what a person sees at first
}

// Label names a view, and the key that chooses it where it has one.
func (r *Row) Label() string {
	if r.Key == "" {
		return r.Name
	}
	return command.KeyOf(r.Name) + " " + r.Name
}

// Offers says whether the views of a row offer a command.
func (r *Row) Offers(name string) bool {
	return ActionOf(r.New(nil, widget.NewLog()).Actions(), name) != nil
}

// Offering are the views that offer a command, as they are called.
func Offering(name string, called func(*Row) string) (names []string) {
	for i := range Views {
		if Views[i].Offers(name) {
			names = append(names, called(&Views[i]))
		}
	}
	for _, row := range inner {
		if row.Offers(name) {
			names = append(names, called(row))
		}
	}
	return names
}

// ActionOf is the action of a name, nil where there is none.
func ActionOf(list []command.Action, name string) *command.Action {
	for i := range list {
		if list[i].Name == name {
			return &list[i]
		}
	}
	return nil
}

// Host is the program as a view sees it.
type Host interface {
	Size() (w, h int)      // cells that the view has for its list
	Remark(text string)    // says why a key does nothing
	ShowStep(by int)       // shows the recorded step so many further on
	LookAt(step int)       // shows a recorded step
	Push(row *Row, v View) // opens a view over this one
	Show(t Text)           // shows a text over the view, once it is made
	Do(c session.Command)  // sends a command to the session
}

// View is one of the screens. A view holds what a person did to it (cursor, folding, order, filter); what it
// shows comes from the snapshot, by jobs. Its methods are called by the event loop only. A view embeds basics
// and has the methods of what it can do.
type View interface {
	// Load wants what there is to see in a snapshot, on a screen of w cells. It is called after every message
	// and must cost nothing where nothing changed.
	Load(j *widget.Jobs, s Snapshot, w int)
	// Title says what the list shows, on a screen of w cells.
	Title(w int) []table.Segment
	// Render draws into w by h cells: at most h lines of at most w cells.
	Render(t *widget.Theme, g widget.Glyphs, w, h int, focused bool) []string
	// Actions are the commands that the view offers besides those that every view has.
	Actions() []command.Action
	// Move moves the cursor.
	Move(m widget.Motion)
	// Takes says which steps the view shows: as many as the selection has, the last of them, or the whole
	// run.
	Takes() report.Takes
	// Pane has the rows, with a cursor; nil where there are none.
	Pane() *widget.TablePane
	// Detailed says that the view has a pane with more about the selected row, detail is what it shows.
	Detailed() bool
	Detail() *Detail
	// About is the line under the tabs, false where that is what the steps cost. It must cost nothing.
	About(s Snapshot) (table.Line, bool)
	// Filter is how lines are filtered; nil where they cannot be.
	Filter() *filter
	// Copied is the selected row as text.
	Copied() string
	// Open opens the selected row, back leaves one level of the view's own; false where there is none.
	Open() bool
	Back() bool
	// Turn goes to the next or the former of what the view shows one at a time; false where there is no such
	// thing: then it is what happened in the run.
	Turn(by int) bool
	// PointAt takes a click at a cell of what was drawn in w cells; false where nothing is there.
	PointAt(x, y, w int) bool
	// Has says whether an event of the run is of interest here; nil: all are.
	Has() func(analyze.Event) bool
	// Stop stops what the view asked of the model; false where there was nothing.
	Stop() bool
	// Launch is the dispatch under the cursor, nil for none.
	Launch() *analyze.Launch
	// Look is what undo remembers besides rows, a comparable value, and restore takes it.
	Look() any
	Restore(look any)
	// Scrolls is how many lines a turn of the wheel goes.
	Scrolls() int
}

// filter is the filter of a view.
type filter struct {
	Text string
	Set  func(string)
}

// WheelLines is how many lines a turn of the wheel scrolls.
const WheelLines = 3

// Basics are the methods of a view that can do nothing.
type Basics struct{}

func (Basics) Actions() []command.Action         { return nil }
func (Basics) Move(widget.Motion)                {}
func (Basics) Takes() report.Takes               { return report.NoSteps }
func (Basics) Pane() *widget.TablePane           { return nil }
func (Basics) Detailed() bool                    { return false }
func (Basics) Detail() *Detail                   { return nil }
func (Basics) About(Snapshot) (table.Line, bool) { return table.Line{}, false }
func (Basics) Filter() *filter                   { return nil }
func (Basics) Copied() string                    { return "" }
func (Basics) Open() bool                        { return false }
func (Basics) Back() bool                        { return false }
func (Basics) Turn(int) bool                     { return false }
func (Basics) PointAt(int, int, int) bool        { return false }
func (Basics) Has() func(analyze.Event) bool     { return nil }
func (Basics) Stop() bool                        { return false }
func (Basics) Launch() *analyze.Launch           { return nil }
func (Basics) Look() any                         { return nil }
func (Basics) Restore(any)                       {}
func (Basics) Scrolls() int                      { return WheelLines }

// Detail is what the pane of details shows. A job makes its lines, nil for none; of names what they are of
// wherever it is shown, title says it to a person.
type Detail struct {
	Of, Title string
	Lines     func(context.Context) ([]string, error)
}

// Text is what a job makes to lie over a view, and what is said where there are no lines.
type Text struct {
	Of   func(context.Context) (Page, error)
	None string
	Code bool // its lines are not broken where they are too long
}

// Page is a text that was made, and where keys go from it.
type Page struct {
	Title string
	Lines []string
	Marks [][]widget.Stretch // by line, nil for none
	// Broken breaks a line to so many cells; nil: they stay as they are, and have marks.
	Broken func(line string, w int) []string
	Whole  string // what is copied; "": the lines
	// Earlier and later are the same of another step, nil where there is none; folded is the same with more
	// or less in it.
	Earlier, Later, Folded *Text
	First, Last            string // why there is no earlier one, or no later one
}

// WrapHanging breaks a line of a detail to w cells; what follows is aligned with the text after the label.
func WrapHanging(l string, w int) []string {
	const deep = analyze.DetailLabel
	switch {
	case len(l) > deep && l[deep-1] == ' ' && !strings.Contains(strings.TrimRight(l[:deep], " "), " "):
		return widget.WrapUnder(l, w, deep, deep)
	case strings.HasPrefix(l, " "):
		return widget.WrapIndented(l, w)
	}
	return widget.WrapText(l, w)
}

// MostShown is how many characters of an error are shown; the log has it whole.
const MostShown = 1000
