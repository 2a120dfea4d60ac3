// Package view defines what a screen of the terminal program is, and what the screens share. The screens are
// in the packages below this one; package all lists them. A view keeps its own display state and draws the
// data of a Snapshot. Views use the program only through Host. The method Actions of a view returns the
// implementations of its commands.
package view

import (
	"context"
	"strings"

	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/report"
	"gpuscope/trace/table"
	"gpuscope/tui/command"
	"gpuscope/tui/widget"
)

// Row describes one view.
type Row struct {
	Key   string
	Name  string
	Doc   string        // one sentence
	Needs command.Needs // what is required before the view has something to show
	New   func(Host, *widget.Log) View
	First bool // the view shown when the program starts
}

// Label returns the name of a view, preceded by its key if it has one.
func (r *Row) Label() string {
	if r.Key == "" {
		return r.Name
	}
	return command.KeyOf(r.Name) + " " + r.Name
}

// Offers reports whether the view offers a command.
func (r *Row) Offers(name string) bool {
	return ActionOf(r.New(nil, widget.NewLog()).Actions(), name) != nil
}

// ActionOf returns the action with the given name, or nil if there is none.
func ActionOf(list []command.Action, name string) *command.Action {
	for i := range list {
		if list[i].Name == name {
			return &list[i]
		}
	}
	return nil
}

// Host is the interface through which a view uses the program.
type Host interface {
	Size() (w, h int)      // size of the view's list, in cells
	Remark(text string)    // tells the user why a key does nothing
	ShowStep(by int)       // moves by a number of recorded steps
	LookAt(step int)       // shows the recorded step with this index
	Push(row *Row, v View) // opens a view on top of this one
	Pop()                  // closes the view that was opened last
	Show(t Text)           // builds a text in a job and shows it over the view
	Do(c session.Command)  // sends a command to the session
	Hint() string          // says what the user can press next; "" if every hint was followed
	Ask(q Question)        // asks the user for a line of text
	// ShowDispatch selects a dispatch of a recorded step in Dispatches. ChosenDispatch returns the dispatch
	// that the user selected there; the bool is false if the user selected none.
	ShowDispatch(step int, id trace.DispatchID)
	ChosenDispatch() (id trace.DispatchID, ok bool)
}

// Question asks for a line of text. If Live is not nil, the program calls it with the text typed so far and
// shows the result as the label.
type Question struct {
	Label, Hint string // the hint is shown while the line is empty
	Suggest     string // the text with which the line begins
	Live        func(text string) string
	Take        func(text string)
}

// View is one of the screens. A view keeps its display state: cursor, grouping, order and filter. Jobs
// compute the shown data from the snapshot. Only the event loop calls the methods of a view. A view embeds
// Basics and overrides the methods that it supports.
type View interface {
	// Load starts the jobs that compute the data to show from a snapshot, for a screen of w cells. Load
	// is called after every message, so it must be fast if nothing has changed.
	Load(j *widget.Jobs, s Snapshot, w int)
	// Title returns the title line of the list, for a screen of w cells.
	Title(w int) []table.Segment
	// Render draws the view: at most h lines of at most w cells.
	Render(t *widget.Theme, g widget.Glyphs, w, h int, focused bool) []string
	// Actions returns the commands that this view offers in addition to those of every view.
	Actions() []command.Action
	// Move moves the cursor.
	Move(m widget.Motion)
	// Takes returns which steps the view shows: the selected steps, only the last selected step, or the
	// whole run.
	Takes() report.Takes
	// Sums reports whether a view of the last selected step also has numbers of all selected steps, such as
	// what to fix first in them. These are the steps that Snapshot.Of(report.AnySteps) returns.
	Sums() bool
	// Pane returns the rows of the view with their cursor, or nil if the view has no rows.
	Pane() *widget.TablePane
	// Detailed reports whether the view has a detail pane for the selected row. Detail returns the
	// contents of the pane.
	Detailed() bool
	Detail() *Detail
	// About returns the line below the tabs, or false if that line should show the summary of the
	// selected steps. About must be fast.
	About(s Snapshot) (table.Line, bool)
	// Filter returns the filter of the view, or nil if the view has none.
	Filter() *Filter
	// Copied returns the selected row as text.
	Copied() string
	// Open opens the selected row, and returns false if the row cannot be opened. Back closes what was
	// opened last inside the view, and returns false if nothing is open.
	Open() bool
	Back() bool
	// Turn moves to the next item of a view that shows one item at a time, or to the previous item if
	// `by` is negative. It returns false if the view has no such items; the caller then moves to an event
	// of the run.
	Turn(by int) bool
	// PointAt handles a click on a cell of the view as drawn w cells wide. It returns false if nothing is
	// drawn at that cell.
	PointAt(x, y, w int) bool
	// Has returns a function that reports whether an event is relevant in this view; nil: all events are.
	Has() func(analyze.Event) bool
	// Stop cancels the view's request to the model, and reports whether there was one.
	Stop() bool
	// Launch returns the launch of the dispatch under the cursor, or nil if there is none.
	Launch() *analyze.Launch
	// Look returns the state that undo saves in addition to the state of the rows, and Restore sets this
	// state. The state must be comparable with ==.
	Look() any
	Restore(look any)
	// Scrolls returns how many lines one turn of the wheel moves.
	Scrolls() int
}

// Filter holds the text of a view's filter and the function that sets this text.
type Filter struct {
	Text        string
	Set         func(string)
	Label, Hint string // of the input line; if empty, those of a filter of rows
}

// WheelLines is the number of lines that one turn of the wheel scrolls.
const WheelLines = 3

// Basics provides default methods of a View, which do nothing.
type Basics struct{}

func (Basics) Actions() []command.Action         { return nil }
func (Basics) Move(widget.Motion)                {}
func (Basics) Takes() report.Takes               { return report.NoSteps }
func (Basics) Sums() bool                        { return false }
func (Basics) Pane() *widget.TablePane           { return nil }
func (Basics) Detailed() bool                    { return false }
func (Basics) Detail() *Detail                   { return nil }
func (Basics) About(Snapshot) (table.Line, bool) { return table.Line{}, false }
func (Basics) Filter() *Filter                   { return nil }
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

// Detail is the contents of the detail pane. A job calls Lines, which is nil if there are no lines. The field
// Of identifies the described object, and Title is the object's name for the user.
type Detail struct {
	Of, Title string
	Lines     func(context.Context) ([]string, error)
}

// Text is a text that a job builds and that is shown over a view. If the text has no lines, the message None
// is shown.
type Text struct {
	Of   func(context.Context) (Page, error)
	None string
	Code bool // the lines are not wrapped
}

// Page is a finished text, together with related texts that keys open.
type Page struct {
	Title string
	Lines []string
	Head  widget.Paint       // paint of the first line; needs Broken
	Marks [][]widget.Stretch // marks of each line, or nil
	// Broken wraps a line to w cells. If Broken is nil, the lines are not wrapped and may have Marks.
	Broken func(line string, w int) []string
	Whole  string // text that the copy command copies; "": the lines
	// Earlier and Later are the same text for an earlier and a later step, or nil if there is no such
	// step. Folded is a longer or shorter version of the text, or nil if there is none.
	Earlier, Later, Folded *Text
	First, Last            string // messages if there is no earlier or no later text
}

// WrapHanging wraps a line of a detail to w cells. It aligns continuation lines with the text after the
// label.
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

// MostShown is the maximum number of characters of an error on the screen. The log holds the full error.
const MostShown = 1000
