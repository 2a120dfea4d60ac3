// Package all lists the screens of the terminal program. To add a screen, add a package below package view
// and a row here. The keys, tabs, help and docs/reference/keys.md are derived from this list.
package all

import (
	"slices"

	"gpuscope/tui/command"
	"gpuscope/tui/lab"
	"gpuscope/tui/view"
	"gpuscope/tui/view/curves"
	"gpuscope/tui/view/dispatch"
	"gpuscope/tui/view/graph"
	"gpuscope/tui/view/log"
	"gpuscope/tui/view/resize"
	"gpuscope/tui/view/roof"
	"gpuscope/tui/view/step"
	"gpuscope/tui/view/timeline"
	"gpuscope/tui/widget"
)

// Views lists the screens that have a key, in the order of their tabs.
var Views = []view.Row{
	{
		Key: "1", Name: "Step", Needs: command.Shown, New: without(step.New), First: true,
		Doc: "The generated text, the time of the step, and how the time was spent.",
	},
	{
		Key: "2", Name: "Dispatches", Needs: command.Shown, New: without(dispatch.New),
		Doc: "The dispatches that ran: their grids and times, how these changed, and which dispatch to fix first.",
	},
	{
		Key: "3", Name: "Resize", Needs: command.Shown, New: without(resize.New),
		Doc: "Which operators were re-planned in a step, in which order, and which changed value caused it.",
	},
	{
		Key: "4", Name: "Graph", Needs: command.Opened, New: without(graph.New),
		Doc: "Operators with their producers and consumers, values with their contents, and memory.",
	},
	{
		Key: "5", Name: "Curves", Needs: command.Steps, New: without(curves.New),
		Doc: "Charts of time, grid, bytes and waste over the position or the number of prompt tokens.",
	},
	{
		Key: "6", Name: "Timeline", Needs: command.Shown, New: without(timeline.New),
		Doc: "CPU and GPU work of all recorded steps on one time axis, from the whole run down to one dispatch.",
	},
	{
		Key: "0", Name: "Log", New: func(_ view.Host, l *widget.Log) view.View { return log.New(l) },
		Doc: "All messages: notes, compiled kernels, warnings and errors.",
	},
}

// Inner lists the screens that commands open on top of a view.
var Inner = []*view.Row{&graph.NearRow, &graph.ValueRow, &roof.Row, &lab.Row}

// without adapts the constructor `new` of a view that does not use the log to the type of the field New of a
// Row.
func without[V view.View](new func(view.Host) V) func(view.Host, *widget.Log) view.View {
	return func(h view.Host, _ *widget.Log) view.View { return new(h) }
}

// Offering returns the names of the screens that offer the command `name`. `called` returns the name of one
// screen.
func Offering(name string, called func(*view.Row) string) (names []string) {
	rows := make([]*view.Row, 0, len(Views)+len(Inner))
	for i := range Views {
		rows = append(rows, &Views[i])
	}
	for _, row := range slices.Concat(rows, Inner) {
		if row.Offers(name) {
			names = append(names, called(row))
		}
	}
	return names
}
