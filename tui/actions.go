package tui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gpuscope/tui/widget"
)

// scope says where an action's keys hold.
type scope int

const (
	anywhere scope = iota // views and overlays
	inViews               // every view, or those that have the action's ability
	moving                // lists and texts, in views and overlays
	overlays              // what lies over a view
)

func (s scope) String() string {
	return [...]string{"Anywhere", "In every view", "Moving", "Over a view"}[s]
}

// action is one thing a person can do. This table is all there is: it dispatches keys, writes the hint line,
// the help and the palette, and docs/keys.md is made from it.
type action struct {
	keys []string
	name string // in the hint line and the palette: a word or two
	doc  string // in the help: a sentence
	in   []scope
	of   *ability          // in views: only in those that have it; nil: in all
	hint int               // place in the hint line, 0: not in it
	with string            // the action whose key stands before this one's in the hint line, for one word
	word string            // in the hint line, in place of the name
	now  func(*App) string // the word where it is another one now, nil or "" where it is not
	off  func(*App) string // why it cannot be done now, "" where it can
	miss func(*App)        // what there is to do where it was asked for and cannot be done; may be nil
	run  func(*App)        //
}

// actions are in the order of the help.
var actions []action

func init() { actions = allActions() } // not a literal: the actions use the table for help and palette

// allActions makes the table.
func allActions() []action {
	list := []action{
		{
			keys: []string{"s"}, name: "token", doc: "Next token: decode one. In a trace: the next step.",
			in: []scope{inViews}, hint: 1, off: cannotNext, run: (*App).next,
		},
		{
			keys: []string{"S"}, name: "back",
			doc: "Previous token: set the position back by one step. In a trace: the step before.",
			in:  []scope{inViews}, hint: 3, off: cannotBack, run: (*App).back,
		},
		{
			keys: []string{"space"}, name: "run",
			doc: "Run until the end token or the context's end; again to pause.",
			in:  []scope{inViews}, hint: 2, now: pauses, off: cannotRun, run: (*App).runPause,
		},
		{
			keys: []string{"R"}, name: "repeat",
			doc: "Repeat the step that is shown in its place 10 times: medians get their samples.",
			in:  []scope{inViews}, hint: 9, off: needsRun, run: (*App).repeat,
		},
		{
			keys: []string{"P"}, name: "run to",
			doc: "Run to a position or to a condition, or run this step up to a dispatch. In a trace: to a position. Without a device: plan a step of any shape.",
			in:  []scope{inViews}, hint: 13, off: cannotTarget, run: (*App).askTarget,
		},
		{
			keys: []string{"D"}, name: "breakpoints",
			doc: "Breakpoints: where every run pauses. Type one to add it, delete removes the selected.",
			in:  []scope{inViews}, off: needsSession, run: (*App).askBreaks,
		},
		{
			keys: []string{"i"}, name: "prompt", doc: "Type a new prompt; it replaces the text. With --chat: type your next turn of the conversation.",
			in: []scope{inViews}, hint: 14, off: needsSession, run: (*App).askPrompt,
		},
		{
			keys: []string{"I"}, name: "edit",
			doc: "Edit the text from the shown step on, and continue; what the cache holds of it is kept.",
			in:  []scope{inViews}, off: needsText, run: (*App).askEdit,
		},
		{
			keys: []string{"K"}, name: "chunk", doc: "How many tokens a step of a prompt takes.",
			in: []scope{inViews}, off: needsSession, run: (*App).askChunk,
		},
		{
			keys: []string{"X"}, name: "reset", doc: "Reset: no text, position 0. The recorded steps stay.",
			in: []scope{inViews}, off: needsSession, run: (*App).reset,
		},
		{
			keys: []string{"r"}, name: "restart",
			doc: "Start an engine that has gone again, at the same model, prompt and position.",
			in:  []scope{inViews, overlays}, hint: 1, off: cannotRestart, miss: (*App).wishRestart,
			run: (*App).restart,
		},
		{
			keys: []string{"T"}, name: "timing",
			doc: "How closely the steps to come are timed: off, step, block, dispatch.",
			in:  []scope{inViews}, off: needsDevice, run: (*App).askTiming,
		},
		{
			keys: []string{"L"}, name: "ceilings",
			doc: "Measure what the device can do at best: limits, ~lost and verdicts are drawn from it.",
			in:  []scope{inViews}, off: needsDevice, run: (*App).ceilings,
		},
		{
			keys: []string{"f"}, name: "follow",
			doc: "Follow the newest step, or stay on the one that is shown.", in: []scope{inViews},
			off: cannotFollow, run: (*App).toggleFollow,
		},
		{
			keys: []string{","}, name: "step before",
			doc: "Show the recorded step before, without moving the model.", in: []scope{inViews},
			off: needsTrace, run: func(a *App) { a.showStep(-1) },
		},
		{
			keys: []string{"."}, name: "step after", doc: "Show the recorded step after.",
			in: []scope{inViews}, off: needsTrace, run: func(a *App) { a.showStep(1) },
		},
		{
			keys: []string{"]"}, name: "next event",
			doc: "Show the next step at which something happened: another phase or token count, a grid or route that changed, a cold or slow step. In Resize: the next step in which a grid changed. In Curves: the next change of the row's grid. In an opened value: the next dispatch that writes its memory.",
			in:  []scope{inViews}, hint: 8, with: "event before", word: "event", off: needsShown,
			run: func(a *App) { a.turn(1) },
		},
		{
			keys: []string{"["}, name: "event before",
			doc: "Show the step before at which something happened. In Resize: in which a grid changed. In Curves: the change of the row's grid before. In an opened value: the dispatch before that writes its memory.",
			in:  []scope{inViews}, off: needsShown, run: func(a *App) { a.turn(-1) },
		},
		{
			keys: []string{"v"}, name: "scope",
			doc: "What tables speak of: this step, all warm decode steps, the prefill, the marked steps. What asks for a step goes back to this step.",
			in:  []scope{inViews}, hint: 7, off: cannotScope, run: func(a *App) { a.nextScope(1) },
		},
		{
			keys: []string{"V"}, name: "scope back", doc: "What tables speak of, the other way round.",
			in: []scope{inViews}, off: cannotScope, run: func(a *App) { a.nextScope(-1) },
		},
		{
			keys: []string{"b"}, name: "base",
			doc: "Compare with what is shown now: this step or the scope; on the base itself: with the step before.",
			in:  []scope{inViews}, hint: 8, off: needsShown, run: (*App).setBase,
		},
		{
			keys: []string{"B"}, name: "base trace",
			doc: "Compare with the same kind of steps in another trace, by the name of its file; empty: with this one.",
			in:  []scope{inViews}, off: needsShown, run: (*App).askBase,
		},
		{
			keys: []string{"m"}, name: "mark step", doc: "Mark the step as one end of a range, the next as the other.",
			in: []scope{inViews}, of: stepping, off: needsShown, run: (*App).markStep,
		},

		{
			keys: []string{"enter"}, name: "open",
			doc: "Open or close the row; a value: its numbers; one without rows: go to its detail.",
			in:  []scope{inViews}, of: openable, hint: 4, off: (*App).empty, run: (*App).open,
		},
		{
			keys: []string{"enter"}, name: "zoom in",
			doc: "Open a part of the GPU's track, a layer with its dispatches; again to close it.",
			in:  []scope{inViews}, of: parted, hint: 4, off: cannotZoom,
			run: func(a *App) { a.view().(partly).zoomIn() },
		},
		{
			keys: []string{"F"}, name: "fold", doc: "Fold by layer, op, kernel, or not at all.",
			in: []scope{inViews}, of: folds, hint: 7, off: (*App).empty,
			run: func(a *App) { a.view().(folder).refold() },
		},
		{
			keys: []string{"o"}, name: "sort",
			doc: "Sort by a column: its letter follows, the same again turns the order round.",
			in:  []scope{inViews}, of: rowsOpen, hint: 10, off: noRows,
			run: func(a *App) { a.chord = a.table().SortChord() },
		},
		{
			keys: []string{"O"}, name: "reverse", doc: "Turn the order round.",
			in: []scope{inViews}, of: rowsOpen,
			off: (*App).empty, run: func(a *App) { a.table().Reverse() },
		},
		{
			keys: []string{"/"}, name: "filter",
			doc: "Show rows that match: text, !text, re:pattern, column:text, column:=text, us:>10, #37.",
			in:  []scope{inViews}, of: filters, hint: 6, off: (*App).empty, run: (*App).askFilter,
		},
		{
			keys: []string{"n"}, name: "next match",
			doc: "To the next row that the filter finds; without one, that the last filter found.",
			in:  []scope{inViews}, of: rowsOpen, off: noRows, run: func(a *App) { a.nextMatch(1) },
		},
		{
			keys: []string{"N"}, name: "match before", doc: "To the row before that the filter finds.",
			in: []scope{inViews}, of: rowsOpen, off: noRows, run: func(a *App) { a.nextMatch(-1) },
		},
		{
			keys: []string{"u"}, name: "undo",
			doc: "Take back a change of the view: order, fold, opened row, filter, scope, base, split, zoom, view.",
			in:  []scope{inViews}, off: cannotUndo, run: (*App).undo,
		},
		{
			keys: []string{"w"}, name: "why",
			doc: "Why is this grid what it is, or runs no more: the chain back to the token count. Of a value: all it reaches.",
			in:  []scope{inViews}, of: explains, hint: 5, off: (*App).empty, run: (*App).showWhy,
		},
		{
			keys: []string{"c"}, name: "cost",
			doc: "Measure what the rows on the screen cost the step: it runs without each, in turns. Again adds rounds.",
			in:  []scope{inViews}, of: costs, hint: 5, off: cannotCost, run: (*App).costOfRows,
		},
		{
			keys: []string{"C"}, name: "cost of marked",
			doc: "Measure what the marked rows cost together, or the selected one: the most that fusing them gives.",
			in:  []scope{inViews}, of: costs, off: cannotCost, run: (*App).costOfMarked,
		},
		{
			keys: []string{"a"}, name: "verify",
			doc: "Hold the marked rows, or the selected one, to their float64 references: the kernels' own error.",
			in:  []scope{inViews}, of: costs, off: cannotCost, run: (*App).verifyRows,
		},
		{
			keys: []string{"A"}, name: "verify step",
			doc: "Hold every dispatch of the step to float64 references: its own error, and what it has inherited.",
			in:  []scope{inViews}, of: costs, off: cannotCost, run: (*App).verifyStep,
		},
		{
			keys: []string{"m"}, name: "mark row", doc: "Mark the row, or take its mark away.",
			in: []scope{inViews}, of: dispatches, off: noRows, run: func(a *App) { a.table().Mark() },
		},
		{
			keys: []string{"e"}, name: "WGSL",
			doc: "Edit the kernel's text: once saved it runs in turns with the kernel. In a trace: show it.",
			in:  []scope{inViews}, of: dispatches, hint: 12, off: (*App).empty, run: (*App).editKernel,
		},
		{
			keys: []string{"U"}, name: "use kernel",
			doc: "Have the steps to come run the text that was tried last, or the kernel's own again.",
			in:  []scope{inViews}, of: dispatches, off: cannotUse, run: (*App).useText,
		},
		{
			keys: []string{"a"}, name: "axis",
			doc: "Against the position of decode steps, or the length of a prompt.",
			in:  []scope{inViews}, of: curves, hint: 4, off: (*App).empty,
			run: func(a *App) { a.view().(curved).turn() },
		},
		{
			keys: []string{"t"}, name: "time",
			doc: "Time the operator alone on each of its routes, at the cursor and where the plan changes route.",
			in:  []scope{inViews}, of: curves, hint: 4, off: cannotTime, run: (*App).timeOperator,
		},
		{
			keys: []string{"d"}, name: "draw", doc: "Draw the time, the grid, the bytes or the waste.",
			in: []scope{inViews}, of: curves, hint: 4, off: (*App).empty,
			run: func(a *App) { a.view().(curved).redraw() },
		},
		{
			keys: []string{"-"}, name: "wider", doc: "Draw more of the axis, up to all of it.",
			in: []scope{inViews}, of: curves, hint: 5, off: (*App).empty,
			run: func(a *App) { a.widen(4) },
		},
		{
			keys: []string{"+", "="}, name: "closer", doc: "Draw less of the axis, around the cursor.",
			in: []scope{inViews}, of: curves, hint: 6, off: (*App).empty,
			run: func(a *App) { a.widen(0.25) },
		},
		{
			keys: []string{"p"}, name: "producers", doc: "The operators that give what the selected one takes.",
			in: []scope{inViews}, of: graphs, hint: 5, off: (*App).empty,
			run: func(a *App) { a.view().(nearer).near(false) },
		},
		{
			keys: []string{"c"}, name: "consumers", doc: "The operators that take what the selected one gives.",
			in: []scope{inViews}, of: graphs, hint: 5, off: (*App).empty,
			run: func(a *App) { a.view().(nearer).near(true) },
		},
		{
			keys: []string{"a"}, name: "list",
			doc: "Another list of the graph: operators, values, memory, who has a slot when.",
			in:  []scope{inViews}, of: switches, hint: 4, off: (*App).empty,
			run: func(a *App) { a.view().(switcher).nextList() },
		},
		{
			keys: []string{"A"}, name: "mark by", doc: "Mark operators by time alone, cost, waste or gap.",
			in: []scope{inViews}, of: switches, off: (*App).empty,
			run: func(a *App) { a.view().(weigher).reweigh() },
		},
		{
			keys: []string{"x"}, name: "export", doc: "Write the trace to a file: .json, .json.gz or .jsonl.",
			in: []scope{inViews, overlays}, hint: 11, off: needsTrace, run: (*App).askExport,
		},

		{
			keys: []string{"E"}, name: "export table",
			doc: "Write the table on the screen to a file, as it is filtered, folded, sorted and scoped.",
			in:  []scope{inViews}, of: rowsOpen, off: noRows, run: (*App).askExportTable,
		},

		{
			keys: []string{"y"}, name: "copy",
			doc: "Copy the selected row, or the text that lies over the view, to the clipboard (OSC 52, also over ssh; in tmux with set-clipboard on).", in: []scope{inViews, overlays}, run: (*App).copy,
		},

		{
			keys: []string{"down", "j"}, name: "down", doc: "Down. In Step: the step after; where a part is open, the next part.",
			in: []scope{moving}, run: func(a *App) { a.Move(widget.Down) },
		},
		{
			keys: []string{"up", "k"}, name: "up", doc: "Up. In Step: the step before; where a part is open, the part before.", in: []scope{moving},
			run: func(a *App) { a.Move(widget.Up) },
		},
		{
			keys: []string{"left", "h"}, name: "left",
			doc: "Close the row, or go to the one it stands in. In Step: the step before.",
			in:  []scope{moving}, run: func(a *App) { a.Move(widget.Left) },
		},
		{
			keys: []string{"right", "l"}, name: "right", doc: "Open the row. In Step: the step after.",
			in: []scope{moving}, run: func(a *App) { a.Move(widget.Right) },
		},
		{
			keys: []string{"g", "home"}, name: "top", doc: "To the first.", in: []scope{moving},
			run: func(a *App) { a.Move(widget.Top) },
		},
		{
			keys: []string{"G", "end"}, name: "bottom", doc: "To the last.", in: []scope{moving},
			run: func(a *App) { a.Move(widget.Bottom) },
		},
		{
			keys: []string{"pgup"}, name: "page up", doc: "A page up.", in: []scope{moving},
			run: func(a *App) { a.Move(widget.PageUp) },
		},
		{
			keys: []string{"pgdown"}, name: "page down", doc: "A page down.", in: []scope{moving},
			run: func(a *App) { a.Move(widget.PageDown) },
		},
		{
			keys: []string{"ctrl+u"}, name: "half up", doc: "Half a page up.", in: []scope{moving},
			run: func(a *App) { a.Move(widget.HalfUp) },
		},
		{
			keys: []string{"ctrl+d"}, name: "half down", doc: "Half a page down.", in: []scope{moving},
			run: func(a *App) { a.Move(widget.HalfDown) },
		},
	}
	list = append(list, viewActions()...)
	return append(list, []action{
		{
			keys: []string{"`"}, name: "last view", doc: "Back to the view before.",
			in: []scope{inViews}, run: func(a *App) { a.goTo(a.previous) },
		},
		{
			keys: []string{"tab", "shift+tab"}, name: "pane", doc: "To the other pane: list or detail.",
			in: []scope{inViews}, off: onePane, run: (*App).nextPane,
		},
		{
			keys: []string{"z"}, name: "zoom", doc: "The pane alone on the screen, and back.",
			in: []scope{inViews}, off: onePane, run: (*App).toggleZoom,
		},
		{
			keys: []string{"<"}, name: "less list", doc: "Move the split: more detail.",
			in: []scope{inViews}, off: cannotSplit, run: func(a *App) { a.moveSplit(-1) },
		},
		{
			keys: []string{">"}, name: "more list", doc: "Move the split: more list.",
			in: []scope{inViews}, off: cannotSplit, run: func(a *App) { a.moveSplit(1) },
		},
		{
			keys: []string{":"}, name: "palette", doc: "Find an action by its name.",
			in: []scope{inViews}, run: (*App).openPalette,
		},
		{
			keys: []string{"M"}, name: "mouse", doc: "Mouse on or off. While it is on, hold shift to select text.",
			in: []scope{inViews}, run: (*App).toggleMouse,
		},
		{
			keys: []string{"?"}, name: "help", doc: "What the keys do here.",
			in: []scope{inViews}, hint: 15, run: (*App).showHelp,
		},
		{
			keys: []string{"esc"}, name: "back out", doc: "Dismiss the error, or leave the filter, the zoom, the pane.",
			in: []scope{inViews}, run: (*App).backOut,
		},
		{
			keys: []string{"q"}, name: "quit", doc: "Quit; close what was opened over a view.",
			in: []scope{inViews}, hint: 16, run: func(a *App) {
				if !a.pop() {
					a.quit()
				}
			},
		},
		{
			keys: []string{"/"}, name: "find", doc: "Find a text: lines that have it are marked.",
			in: []scope{overlays}, run: (*App).askFind,
		},
		{
			keys: []string{"n"}, name: "next found", doc: "To the next line that was found.",
			in: []scope{overlays}, run: func(a *App) { a.nextFound(1) },
		},
		{
			keys: []string{"N"}, name: "found before", doc: "To the line before that was found.",
			in: []scope{overlays}, run: func(a *App) { a.nextFound(-1) },
		},
		{
			keys: []string{"]"}, name: "later", doc: "Why: the next change of this grid in the run.",
			in: []scope{overlays}, run: func(a *App) { a.turnOver(1) },
		},
		{
			keys: []string{"["}, name: "earlier", doc: "Why: the change of this grid before.",
			in: []scope{overlays}, run: func(a *App) { a.turnOver(-1) },
		},
		{
			keys: []string{"U"}, name: "use text",
			doc: "Of a kernel that was tried: have the steps to come run the text, or its own again.",
			in:  []scope{overlays}, off: cannotUse, run: (*App).useText,
		},
		{
			keys: []string{"enter"}, name: "unfold",
			doc: "Why: open the chain, or close it. Elsewhere: close what lies over the view.",
			in:  []scope{overlays}, run: (*App).unfold,
		},
		{
			keys: []string{"esc", "q", "?"}, name: "close", doc: "Close what lies over the view.",
			in: []scope{overlays}, run: (*App).closeOverlay,
		},
		{
			keys: []string{`ctrl+\`}, name: "timings",
			doc: "What the screen itself takes: frames, messages, jobs; again hides it.",
			in:  []scope{anywhere}, run: (*App).toggleMeter,
		},
		{
			keys: []string{"ctrl+c"}, name: "cancel",
			doc: fmt.Sprintf("Cancel what is running; again within %.0f s: quit.", armedFor.Seconds()),
			in:  []scope{anywhere}, run: (*App).cancel,
		},
		{
			keys: []string{"ctrl+z"}, name: "suspend", doc: "Suspend; fg brings it back.",
			in: []scope{anywhere}, run: (*App).suspend,
		},
	}...)
}

// viewActions go to the views.
func viewActions() []action {
	var list []action
	for i := range views {
		list = append(list, action{
			keys: []string{views[i].key}, name: views[i].name, doc: views[i].doc, in: []scope{inViews},
			run: func(a *App) { a.goTo(i) },
		})
	}
	return list
}

// place is where keys are pressed.
type place struct {
	in   []scope
	view view // nil: only what holds in every view
}

// holds says whether the action is for a place.
func (a *action) holds(at place) bool {
	return slices.ContainsFunc(a.in, func(s scope) bool {
		able := s != inViews || a.of == nil || at.view != nil && a.of.of(at.view)
		return able && slices.Contains(at.in, s)
	})
}

// actionFor finds the action of a key at a place.
func actionFor(name string, at place) *action {
	for i := range actions {
		if slices.Contains(actions[i].keys, name) && actions[i].holds(at) {
			return &actions[i]
		}
	}
	return nil
}

// here are the actions of a place, those of the hint line first and in its order when hinted is set.
func here(at place, hinted bool) []*action {
	var out []*action
	for i := range actions {
		a := &actions[i]
		if a.holds(at) && (!hinted || a.hint > 0) {
			out = append(out, a)
		}
	}
	if hinted {
		slices.SortStableFunc(out, func(a, b *action) int { return a.hint - b.hint })
	}
	return out
}

// those are the actions that a person finds under one heading: of one ability, or of a scope and none.
func those(in scope, of func(*ability) bool) []*action {
	var out []*action
	for i := range actions {
		if a := &actions[i]; slices.Contains(a.in, in) && of(a.of) {
			out = append(out, a)
		}
	}
	return out
}

func general(of *ability) bool { return of == nil }

// key is the first key of an action; one that has none is found by its name.
func (a *action) key() string {
	if len(a.keys) == 0 {
		return ":" + a.name
	}
	return a.keys[0]
}

// hinted are the key and the word of an action in the hint line.
func (a *action) hinted(app *App) [2]string {
	keys, now := a.key(), ""
	if a.with != "" {
		keys = keyOf(a.with) + " " + keys
	}
	if a.now != nil {
		now = a.now(app)
	}
	return [2]string{keys, cmp.Or(now, a.word, a.name)}
}

// hintWidth is how many cells a key and a word take in the hint line.
func hintWidth(said [2]string) int { return widget.Width(said[0]) + widget.Width(said[1]) + 3 }

// keyNames are how the keys of an action are shown.
func (a *action) keyNames() string { return strings.Join(a.keys, " ") }

// why says why an action cannot be done now, "" where it can.
func (a *action) why(app *App) string {
	if a.off == nil {
		return ""
	}
	return a.off(app)
}

// keyOf is the first key of an action by its name. Prose takes the keys that it speaks of from here.
func keyOf(name string) string {
	for i := range actions {
		if actions[i].name == name {
			return actions[i].key()
		}
	}
	panic("tui: no action is named " + name)
}

// KeysDoc is docs/keys.md, made from the table of actions.
func KeysDoc() string {
	var b strings.Builder
	b.WriteString("# Keys\n\nMade from the table of actions in `tui/actions.go` by " +
		"`go test ./tui -run KeysDoc -update`. Do not edit.\n\n" +
		"While a line of text is being typed (prompt, filter, file name) it takes every printable key; " +
		"`enter`\ntakes the text, `esc` leaves it.\n\n" + settingsDoc)
	section := func(name string, list []*action) {
		b.WriteString("\n## " + name + "\n\n| key | action | what it does |\n| --- | --- | --- |\n")
		for _, a := range list {
			keys := make([]string, len(a.keys))
			for i, k := range a.keys {
				keys[i] = "`" + k + "`"
				if k == "`" {
					keys[i] = "`` ` ``"
				}
			}
			b.WriteString("| " + strings.Join(keys, " ") + " | " + a.name + " | " + a.doc + " |\n")
		}
	}
	section(inViews.String(), those(inViews, general))
	for _, can := range abilities {
		names := can.views(func(r *viewRow) string { return r.name })
		section(can.name+" ("+strings.Join(names, ", ")+")",
			those(inViews, func(of *ability) bool { return of == can }))
	}
	for _, s := range []scope{moving, overlays, anywhere} {
		section(s.String(), those(s, general))
	}
	b.WriteString("\n## Mouse\n\n| mouse | what it does |\n| --- | --- |\n")
	for _, m := range mouseDoc {
		b.WriteString("| " + m[0] + " | " + m[1] + " |\n")
	}
	return b.String()
}
