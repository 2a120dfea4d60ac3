package tui

import (
	"maps"

	"gpuscope/tui/view"
	"gpuscope/tui/widget"
)

// memento is how a person looks at things: what undo gives back. It holds no data and no position.
type memento struct {
	current int
	zooms   map[int]zoom
	split   map[int]split
	scope   int
	settled bool // the scope came with a run
	base    view.Base
	views   []viewState
}

// chosen is the scope that the person chose: what a run brings is none of their changes.
func (m *memento) chosen() int {
	if m.settled {
		return thisStep
	}
	return m.scope
}

// viewState is that of one view.
type viewState struct {
	choice  widget.Choice
	choices int // rises with every choice
	own     any // of a viewer; comparable
}

// Views that are remembered: who looks further back than that has forgotten them too.
const mostUndo = 100

func (a *App) memento() memento {
	m := memento{
		current: a.current, zooms: maps.Clone(a.zooms), split: maps.Clone(a.split),
		scope: a.scope, settled: a.settling, base: a.base,
	}
	for _, v := range a.views {
		var s viewState
		if rows := v.Pane(); rows != nil {
			s.choice, s.choices = rows.Wanted, rows.WantedOf
		}
		s.own = v.Look()
		m.views = append(m.views, s)
	}
	return m
}

// same says whether two mementos are of one look. A base in another trace is by its name.
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

// changing runs what a person did and remembers how things were looked at before, if that changed them. What
// is being typed is one change, from its first letter to enter.
func (a *App) changing(f func()) {
	if a.before == nil {
		m := a.memento()
		a.before = &m
	}
	f()
	if a.question != nil || a.chord != nil {
		return
	}
	before := a.before
	a.before = nil
	if now := a.memento(); !before.same(&now) && !a.undoing {
		a.undone = append(a.undone[max(0, len(a.undone)-mostUndo+1):], *before)
	}
	a.undoing = false
}

// undo gives back how things were looked at before the last change.
func (a *App) undo() {
	n := len(a.undone) - 1
	m, now := a.undone[n], a.memento()
	a.undone, a.undoing = a.undone[:n], true
	if m.current != a.current {
		a.goTo(m.current)
	}
	a.zooms, a.split = m.zooms, m.split
	if m.base.File != "" && m.base.File != a.base.File {
		a.openBase(m.base.File)
	} else if m.base != a.base {
		a.base, a.file = m.base, nil
	}
	if m.chosen() == now.chosen() {
		m.scope, m.settled = now.scope, now.settled
	}
	a.setScope(m.scope)
	a.settling = m.settled
	for i, s := range m.views {
		v := a.views[i]
		if v.Look() != s.own {
			v.Restore(s.own) // first: it may have another pane then
		}
		if rows := v.Pane(); rows != nil && rows.WantedOf != s.choices {
			rows.Choose(s.choice)
		}
	}
}

func cannotUndo(a *App) string {
	if len(a.undone) == 0 {
		return "nothing was changed"
	}
	return ""
}
