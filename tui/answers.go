package tui

import (
	"slices"

	"gpuscope/session"
	"gpuscope/trace"
)

// awaited is a command that has ended, and whose result is an event of the trace that may not have arrived
// yet: replies and events are sent separately.
type awaited struct {
	kind  session.CommandKind
	since int    // number of events in the trace when the command began
	say   func() // shows the result
}

// answer shows the result of a command that has ended, as soon as the event with the result is there.
func (m *model) answer(j *job, say func()) {
	m.awaits = &awaited{j.command.Kind, j.events, say}
	m.answered()
}

// answered shows the result of the last command if its event has arrived.
func (m *model) answered() {
	w := m.awaits
	if w == nil || w.since > len(m.mirror.Trace.Events) {
		return
	}
	is := func(e trace.Event) bool { return e.Kind == string(w.kind) }
	if slices.ContainsFunc(m.mirror.Trace.Events[w.since:], is) {
		m.awaits = nil
		w.say()
	}
}
