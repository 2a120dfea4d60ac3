package tui

import (
	"maps"

	"gpuscope/tui/view"
	"gpuscope/tui/widget"
)

// history stores the earlier states of the display for undo.
type history struct {
	*selection
	before  *memento // state before the input that is being typed; nil if nothing is being typed
	undone  []memento
	undoing bool
}

// memento is the state of the display that undo restores: views, panes and the user's choices.
type memento struct {
	current int
	zooms   map[int]zoom
	split   map[int]split
	scope   int
	settled bool // a run chose the selection automatically
	base    view.Base
	views   []viewState
}

// chosen returns the index of the selection that the user chose. If a run chose the selection automatically,
// chosen returns thisStep, the default.
func (m *memento) chosen() int {
	if m.settled {
		return thisStep
	}
	return m.scope
}

// viewState is the part of a memento that belongs to one view.
type viewState struct {
	choice  widget.Choice
	choices int // increases with every choice
	own     any // the view's own state; must be comparable with ==
}

// mostUndo is the number of changes that can be undone.
const mostUndo = 100

func (hi *history) memento() memento {
	m := memento{
		current: hi.current, zooms: maps.Clone(hi.zooms), split: maps.Clone(hi.split),
		scope: hi.scope, settled: hi.settling, base: hi.base,
	}
	for _, v := range hi.views {
		var s viewState
		if rows := v.Pane(); rows != nil {
			s.choice, s.choices = rows.Wanted, rows.WantedOf
		}
		s.own = v.Look()
		m.views = append(m.views, s)
	}
	return m
}

// same reports whether two mementos describe the same display. It compares baselines in other traces by file
// name.
func (m *memento) same(o *memento) bool {
	if m.current != o.current || m.chosen() != o.chosen() || m.base != o.base ||
		!maps.Equal(m.zooms, o.zooms) || !maps.Equal(m.split, o.split) {
		return false
	}
	for i := range m.views {
		if m.views[i].choices != o.views[i].choices || m.views[i].own != o.views[i].own {
			return false
		}
	}
	return true
}

// changing runs f, which responds to a user action. If f changes the display, changing saves the previous
// state for undo. A typed line counts as one change, from its first letter to enter.
func (hi *history) changing(f func()) {
	if hi.before == nil {
		m := hi.memento()
		hi.before = &m
	}
	f()
	if hi.question != nil || hi.chord != nil {
		return
	}
	before := hi.before
	hi.before = nil
	if now := hi.memento(); !before.same(&now) && !hi.undoing {
		hi.undone = append(hi.undone[max(0, len(hi.undone)-mostUndo+1):], *before)
	}
	hi.undoing = false
}

// undo restores the state of the display before the last change.
func (hi *history) undo() {
	n := len(hi.undone) - 1
	m, now := hi.undone[n], hi.memento()
	hi.undone, hi.undoing = hi.undone[:n], true
	if m.current != hi.current {
		hi.goTo(m.current)
	}
	hi.zooms, hi.split = m.zooms, m.split
	if m.base.File != "" && m.base.File != hi.base.File {
		hi.openBase(m.base.File)
	} else if m.base != hi.base {
		hi.base, hi.file = m.base, nil
	}
	if m.chosen() == now.chosen() {
		m.scope, m.settled = now.scope, now.settled
	}
	hi.setScope(m.scope)
	hi.settling = m.settled
	for i, s := range m.views {
		v := hi.views[i]
		if v.Look() != s.own {
			v.Restore(s.own) // before Pane is called, because Restore may change which pane the view shows
		}
		if rows := v.Pane(); rows != nil && rows.WantedOf != s.choices {
			rows.Choose(s.choice)
		}
	}
}

func (hi *history) cannotUndo() string {
	if len(hi.undone) == 0 {
		return "there is no change to undo"
	}
	return ""
}
