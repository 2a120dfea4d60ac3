package tui

import (
	"cmp"

	"gpuscope/tui/command"
	"gpuscope/tui/view"
	"gpuscope/tui/view/all"
	"gpuscope/tui/widget"
)

func init() { command.Table = withViews() }

// withViews returns the table of commands. For each view, the table has a command that switches to the view.
func withViews() []command.Row {
	var rows []command.Row
	for i := range all.Views {
		rows = append(rows, command.Row{
			Keys: []string{all.Views[i].Key}, Name: all.Views[i].Name, Doc: all.Views[i].Doc,
			In: []command.Place{command.InViews},
		})
	}
	return command.Default(rows...)
}

// actions returns the commands that App implements. The views implement the other commands.
func (a *App) actions() []command.Action {
	list := []command.Action{
		{Name: "token", Off: func() string { return a.cannotNext() }, Run: a.next},
		{Name: "back", Off: func() string { return a.cannotBack() }, Run: a.back},
		{
			Name: "run", Off: func() string { return a.cannotRun() },
			Now: func() string { return a.pauses() },
			Run: a.runPause,
		},
		{Name: "repeat", Run: a.repeat},
		{Name: "run to", Off: func() string { return a.cannotTarget() }, Run: a.askTarget},
		{Name: "breakpoints", Run: a.askBreaks},
		{Name: "prompt", Run: a.askPrompt},
		{Name: "edit", Run: a.askEdit},
		{Name: "chunk", Run: a.askChunk},
		{Name: "reset", Run: a.reset},
		{
			Name: "restart", Off: func() string { return a.cannotRestart() }, Miss: a.wishRestart,
			Run: a.restart,
		},
		{Name: "timing", Run: a.askTiming},
		{Name: "ceilings", Run: a.ceilings},
		{Name: "follow", Off: func() string { return a.cannotFollow() }, Run: a.toggleFollow},
		{Name: "previous step", Run: func() { a.showStep(-1) }},
		{Name: "next step", Run: func() { a.showStep(1) }},
		{Name: "next event", Run: func() { a.turn(1) }},
		{Name: "previous event", Run: func() { a.turn(-1) }},
		{Name: "selection", Off: func() string { return a.cannotScope() }, Run: func() { a.nextScope(1) }},
		{
			Name: "previous selection", Off: func() string { return a.cannotScope() },
			Run: func() { a.nextScope(-1) },
		},
		{Name: "baseline", Run: a.setBase},
		{Name: "baseline trace", Run: a.askBase},
		{Name: "mark step", Run: a.markStep},
		{Name: "open", Run: a.open},
		{Name: "sort", Run: func() { a.chord = a.table().SortChord() }},
		{Name: "reverse", Run: func() { a.table().Reverse() }},
		{Name: "filter", Run: a.askFilter},
		{Name: "search", Run: a.askFilter},
		{Name: "next match", Run: func() { a.nextMatch(1) }},
		{Name: "previous match", Run: func() { a.nextMatch(-1) }},
		{Name: "undo", Off: func() string { return a.cannotUndo() }, Run: a.undo},
		{Name: "WGSL", Run: a.lab.Edit},
		{Name: "use kernel", Off: func() string { return a.lab.CannotUse() }, Run: a.lab.Use},
		{Name: "variants", Off: func() string { return a.lab.NoVariants() }, Run: a.lab.ShowVariants},
		{Name: "export", Run: a.askExport},
		{Name: "export table", Run: a.askExportTable},
		{Name: "copy", Run: a.copy},
		{Name: "down", Run: func() { a.move(widget.Down) }},
		{Name: "up", Run: func() { a.move(widget.Up) }},
		{Name: "left", Run: func() { a.move(widget.Left) }},
		{Name: "right", Run: func() { a.move(widget.Right) }},
		{Name: "top", Run: func() { a.move(widget.Top) }},
		{Name: "bottom", Run: func() { a.move(widget.Bottom) }},
		{Name: "page up", Run: func() { a.move(widget.PageUp) }},
		{Name: "page down", Run: func() { a.move(widget.PageDown) }},
		{Name: "half up", Run: func() { a.move(widget.HalfUp) }},
		{Name: "half down", Run: func() { a.move(widget.HalfDown) }},
		{Name: "last view", Run: func() { a.goTo(a.previous) }},
		{Name: "pane", Off: func() string { return a.onePane() }, Run: a.nextPane},
		{Name: "zoom", Off: func() string { return a.onePane() }, Run: a.toggleZoom},
		{Name: "less list", Off: func() string { return a.cannotSplit() }, Run: func() { a.moveSplit(-1) }},
		{Name: "more list", Off: func() string { return a.cannotSplit() }, Run: func() { a.moveSplit(1) }},
		{Name: "palette", Run: a.openPalette},
		{Name: "how do I", Run: a.askQuestion},
		{Name: "mouse", Run: a.toggleMouse},
		{Name: "help", Run: a.showHelp},
		{Name: "back out", Run: a.backOut},
		{Name: "quit", Run: func() {
			if !a.pop() {
				a.quit()
			}
		}},
		{Name: "find", Run: a.askFind},
		{Name: "next found", Run: func() { a.nextFound(1) }},
		{Name: "previous found", Run: func() { a.nextFound(-1) }},
		{Name: "later", Run: func() { a.turnOver(1) }},
		{Name: "earlier", Run: func() { a.turnOver(-1) }},
		{Name: "use text", Off: func() string { return a.lab.CannotUse() }, Run: a.lab.Use},
		{Name: "unfold", Run: a.unfold},
		{Name: "close", Run: a.closeOverlay},
		{Name: "timings", Run: a.toggleMeter},
		{Name: "roofline", Run: a.showRoofline},
		{Name: "cancel", Run: a.cancel},
		{Name: "suspend", Run: a.suspend},
	}
	for i := range all.Views {
		list = append(list, command.Action{Name: all.Views[i].Name, Run: func() { a.goTo(i) }})
	}
	return list
}

// action returns the current view's implementation of a command or, if the view has none, that of App.
func (a *App) action(r *command.Row) command.Action {
	own := a.deeds[r.Name]
	if r.Of == "" {
		return own
	}
	act := view.ActionOf(a.view().Actions(), r.Name)
	switch {
	case act == nil:
		return own
	case act.Run == nil:
		return own
	}
	return *act
}

// why returns the reason that a command is not available now, or "" if it is available.
func (a *App) why(r *command.Row) string {
	for _, n := range r.Needs {
		if why := a.lacks(n); why != "" {
			return why
		}
	}
	if off := a.action(r).Off; off != nil {
		return off()
	}
	return ""
}

// hinted returns the keys and the label of a command as the hint line shows them.
func (a *App) hinted(r *command.Row) [2]string {
	keys, now := r.Key(), ""
	if r.With != "" {
		keys = command.KeyOf(r.With) + " " + keys
	}
	if word := a.action(r).Now; word != nil {
		now = word()
	}
	return [2]string{keys, cmp.Or(now, r.Word, r.Name)}
}

// hintWidth returns how many cells of the hint line a key and its label occupy.
func hintWidth(said [2]string) int { return widget.Width(said[0]) + widget.Width(said[1]) + 3 }

// overText is the context for keys that are pressed while an overlay is open.
var overText = command.Where{In: []command.Place{command.Overlays, command.Moving, command.Anywhere}}

// KeysDoc returns the text of docs/reference/keys.md, generated from the table of commands.
func KeysDoc() string {
	return command.KeysDoc(func(name string) []string {
		return all.Offering(name, func(r *view.Row) string { return r.Name })
	}, mouseDoc)
}
