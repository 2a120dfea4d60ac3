package tui

import (
	"slices"
	"strings"
)

// scope says where an action's keys hold.
type scope int

const (
	anywhere   scope = iota // views and overlays
	views                   // every view
	stepView                // one view each
	dispatches              //
	resizes                 //
	logView                 //
	moving                  // lists and texts, in views and overlays
	overlays                // what lies over a view
)

func (s scope) String() string {
	return [...]string{
		"Anywhere", "In every view", "Step", "Dispatches", "Resize", "Log", "Moving",
		"Over a view",
	}[s]
}

// action is one thing a person can do. This table is all there is: it dispatches keys, writes the hint line,
// the help and the palette, and docs/keys.md is made from it.
type action struct {
	keys []string
	name string // in the hint line and the palette: a word or two
	doc  string // in the help: a sentence
	in   []scope
	hint int               // place in the hint line, 0: not in it
	off  func(*App) string // why it cannot be done now, "" where it can
	run  func(*App)        //
}

// actions are in the order of the help.
var actions []action

func init() { // not a literal: the actions use the table for help and palette
	actions = []action{
		{
			keys: []string{"s"}, name: "token", doc: "Next token: decode one. In a trace: the next step.",
			in: []scope{views}, hint: 1, off: cannotNext, run: (*App).next,
		},
		{
			keys: []string{"S"}, name: "back",
			doc: "Previous token: set the position back by one step. In a trace: the step before.",
			in:  []scope{views}, hint: 3, off: cannotBack, run: (*App).back,
		},
		{
			keys: []string{"space"}, name: "run",
			doc: "Run until the end token or the context's end; again to pause.", in: []scope{views}, hint: 2,
			off: cannotRun, run: (*App).runPause,
		},
		{
			keys: []string{"R"}, name: "repeat",
			doc: "Repeat the step in place 10 times: medians get their samples.", in: []scope{views}, hint: 9,
			off: needsStep, run: (*App).repeat,
		},
		{
			keys: []string{"i"}, name: "prompt", doc: "Type a new prompt; it replaces the text.",
			in: []scope{views}, hint: 14, off: needsSession, run: (*App).askPrompt,
		},
		{
			keys: []string{"X"}, name: "reset", doc: "Reset: no text, position 0. The recorded steps stay.",
			in: []scope{views}, off: needsSession, run: (*App).reset,
		},
		{
			keys: []string{"T"}, name: "timing",
			doc: "Timing level of the steps to come: dispatch, step, off.",
			in:  []scope{views}, off: needsSession, run: (*App).nextTiming,
		},
		{
			keys: []string{"f"}, name: "follow",
			doc: "Follow the newest step, or stay on the one that is shown.", in: []scope{views},
			off: needsTrace, run: (*App).toggleFollow,
		},
		{
			keys: []string{","}, name: "step before",
			doc: "Show the recorded step before, without moving the model.", in: []scope{views},
			off: needsTrace, run: func(a *App) { a.showStep(-1) },
		},
		{
			keys: []string{"."}, name: "step after", doc: "Show the recorded step after.", in: []scope{views},
			off: needsTrace, run: func(a *App) { a.showStep(1) },
		},
		{
			keys: []string{"b"}, name: "base",
			doc: "Compare with this step from now on; on the base itself: with the step before again.",
			in:  []scope{views}, hint: 8, off: needsShown, run: (*App).markBase,
		},

		{
			keys: []string{"enter"}, name: "open",
			doc: "Open or close the row; on one without rows: go to its detail.",
			in:  []scope{dispatches, resizes}, hint: 4, off: needsShown, run: (*App).open,
		},
		{
			keys: []string{"F"}, name: "fold", doc: "Fold dispatches by layer, op, kernel, or not at all.",
			in: []scope{dispatches}, hint: 7, off: needsShown, run: (*App).nextFold,
		},
		{
			keys: []string{"o"}, name: "sort",
			doc: "Sort by the next column; after the last: in the table's own order.",
			in:  []scope{dispatches, resizes}, hint: 10, off: needsShown,
			run: func(a *App) { a.table().nextSort() },
		},
		{
			keys: []string{"O"}, name: "reverse", doc: "Turn the order round.",
			in:  []scope{dispatches, resizes},
			off: needsShown, run: func(a *App) { a.table().reverse() },
		},
		{
			keys: []string{"/"}, name: "filter",
			doc: "Show only rows that match: text, !text, re:pattern, column:text, us:>10.",
			in:  []scope{dispatches, resizes, logView}, hint: 6, off: cannotFilter, run: (*App).askFilter,
		},
		{
			keys: []string{"w"}, name: "why",
			doc: "Why is this grid what it is: the chain back to the token count.",
			in:  []scope{dispatches, resizes}, hint: 5, off: needsShown, run: (*App).showWhy,
		},
		{
			keys: []string{"e"}, name: "WGSL", doc: "The kernel's source.", in: []scope{dispatches}, hint: 12,
			off: needsDispatch, run: (*App).showSource,
		},
		{
			keys: []string{"x"}, name: "export", doc: "Write the trace to a file: .json, .json.gz or .jsonl.",
			in: []scope{views}, hint: 11, off: needsTrace, run: (*App).askExport,
		},

		{
			keys: []string{"y"}, name: "copy",
			doc: "Copy the selected row, or the text that lies over the view, to the clipboard (OSC 52, also over ssh).", in: []scope{views, overlays}, run: (*App).copy,
		},

		{
			keys: []string{"down", "j"}, name: "down", doc: "Down. In Step: the step after.",
			in: []scope{moving}, run: func(a *App) { a.move(down) },
		},
		{
			keys: []string{"up", "k"}, name: "up", doc: "Up. In Step: the step before.", in: []scope{moving},
			run: func(a *App) { a.move(up) },
		},
		{
			keys: []string{"left", "h"}, name: "left",
			doc: "Close the row, or go to the one it stands in. In Step: the step before.",
			in:  []scope{moving}, run: func(a *App) { a.move(left) },
		},
		{
			keys: []string{"right", "l"}, name: "right", doc: "Open the row. In Step: the step after.",
			in: []scope{moving}, run: func(a *App) { a.move(right) },
		},
		{
			keys: []string{"g", "home"}, name: "top", doc: "To the first.", in: []scope{moving},
			run: func(a *App) { a.move(top) },
		},
		{
			keys: []string{"G", "end"}, name: "bottom", doc: "To the last.", in: []scope{moving},
			run: func(a *App) { a.move(bottom) },
		},
		{
			keys: []string{"pgup"}, name: "page up", doc: "A page up.", in: []scope{moving},
			run: func(a *App) { a.move(pageUp) },
		},
		{
			keys: []string{"pgdown"}, name: "page down", doc: "A page down.", in: []scope{moving},
			run: func(a *App) { a.move(pageDown) },
		},
		{
			keys: []string{"ctrl+u"}, name: "half up", doc: "Half a page up.", in: []scope{moving},
			run: func(a *App) { a.move(halfUp) },
		},
		{
			keys: []string{"ctrl+d"}, name: "half down", doc: "Half a page down.", in: []scope{moving},
			run: func(a *App) { a.move(halfDown) },
		},

		{
			keys: []string{"1"}, name: "Step",
			doc: "What was generated, what a step cost and where its wall time went.", in: []scope{views},
			run: func(a *App) { a.goTo(stepView) },
		},
		{
			keys: []string{"2"}, name: "Dispatches",
			doc: "What ran, with which grid, how long, what to fix first, what changed.", in: []scope{views},
			run: func(a *App) { a.goTo(dispatches) },
		},
		{
			keys: []string{"3"}, name: "Resize", doc: "Which change woke which operator, pass by pass.",
			in: []scope{views}, run: func(a *App) { a.goTo(resizes) },
		},
		{
			keys: []string{"0"}, name: "Log", doc: "Everything said, compiled, refused.", in: []scope{views},
			run: func(a *App) { a.goTo(logView) },
		},
		{
			keys: []string{"`"}, name: "last view", doc: "Back to the view before.",
			in: []scope{views}, run: func(a *App) { a.goTo(a.previous) },
		},
		{
			keys: []string{"tab", "shift+tab"}, name: "pane", doc: "To the other pane: list or detail.",
			in: []scope{views}, run: (*App).nextPane,
		},
		{
			keys: []string{"z"}, name: "zoom", doc: "The pane alone on the screen, and back.",
			in: []scope{views}, run: (*App).toggleZoom,
		},
		{
			keys: []string{"<"}, name: "less list", doc: "Move the split: more detail.",
			in: []scope{views}, run: func(a *App) { a.split[a.current]-- },
		},
		{
			keys: []string{">"}, name: "more list", doc: "Move the split: more list.",
			in: []scope{views}, run: func(a *App) { a.split[a.current]++ },
		},
		{
			keys: []string{":"}, name: "palette", doc: "Find an action by its name.",
			in: []scope{views}, run: (*App).openPalette,
		},
		{
			keys: []string{"M"}, name: "mouse", doc: "Mouse on or off. While it is on, hold shift to select text.",
			in: []scope{views}, run: (*App).toggleMouse,
		},
		{
			keys: []string{"?"}, name: "help", doc: "What the keys do here.",
			in: []scope{views}, hint: 15, run: (*App).showHelp,
		},
		{
			keys: []string{"esc"}, name: "back out", doc: "Dismiss the error, or leave the filter, the zoom, the pane.",
			in: []scope{views}, run: (*App).backOut,
		},
		{keys: []string{"q"}, name: "quit", doc: "Quit.", in: []scope{views}, hint: 16, run: (*App).quit},
		{
			keys: []string{"esc", "q", "enter", "?"}, name: "close", doc: "Close what lies over the view.",
			in: []scope{overlays}, run: (*App).closeOverlay,
		},
		{
			keys: []string{"ctrl+c"}, name: "cancel", doc: "Cancel what is running; again within 2 s: quit.",
			in: []scope{anywhere}, run: (*App).cancel,
		},
		{
			keys: []string{"ctrl+z"}, name: "suspend", doc: "Suspend; fg brings it back.",
			in: []scope{anywhere}, run: (*App).suspend,
		},
	}
}

// holdsIn says whether the action is for one of these scopes.
func (a *action) holdsIn(in []scope) bool {
	return slices.ContainsFunc(a.in, func(s scope) bool { return slices.Contains(in, s) })
}

// actionFor finds the action of a key in the scopes that hold now.
func actionFor(name string, in []scope) *action {
	for i := range actions {
		if slices.Contains(actions[i].keys, name) && actions[i].holdsIn(in) {
			return &actions[i]
		}
	}
	return nil
}

// here are the actions of some scopes, those of the hint line first and in its order when hinted is set.
func here(in []scope, hinted bool) []*action {
	var out []*action
	for i := range actions {
		a := &actions[i]
		if a.holdsIn(in) && (!hinted || a.hint > 0) {
			out = append(out, a)
		}
	}
	if hinted {
		slices.SortStableFunc(out, func(a, b *action) int { return a.hint - b.hint })
	}
	return out
}

// keyNames are how the keys of an action are shown.
func (a *action) keyNames() string { return strings.Join(a.keys, " ") }

// why says why an action cannot be done now, "" where it can.
func (a *action) why(app *App) string {
	if a.off == nil {
		return ""
	}
	return a.off(app)
}

// KeysDoc is docs/keys.md, made from the table of actions.
func KeysDoc() string {
	var b strings.Builder
	b.WriteString("# Keys\n\nMade from the table of actions in `tui/actions.go` by `go test ./tui -run KeysDoc -update`. Do not edit.\n\n")
	b.WriteString("While a line of text is being typed (prompt, filter, file name) it takes every printable key; " +
		"`enter`\ntakes the text, `esc` leaves it.\n")
	for _, s := range []scope{views, stepView, dispatches, resizes, logView, moving, overlays, anywhere} {
		list := here([]scope{s}, false)
		if len(list) == 0 {
			continue
		}
		b.WriteString("\n## " + s.String() + "\n\n| key | action | what it does |\n| --- | --- | --- |\n")
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
	return b.String()
}
