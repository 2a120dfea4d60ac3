package session

import (
	"errors"
	"fmt"
	"slices"

	"gpuscope/trace"
)

// Mirror rebuilds from events what the session holds, within a budget of memory. What it gives never changes:
// what comes later is in another trace and in other lists. It is not safe for concurrent use.
type Mirror struct {
	Trace    *trace.Trace // nil until opened
	State    State
	Text     Text // up to the current step
	Progress Progress
	Budget   int64 // bytes of steps and plans that Trace keeps, the latest; 0: trace.DefaultBudget

	recorder *trace.Recorder
	// given is the longest of the lists of one array that Text.Given was: a token is added in place behind
	// it, and anywhere else to a copy.
	given []Token
}

// Apply takes one event in. An event that names a step or a plan which is not there is refused.
func (m *Mirror) Apply(e Event) error {
	switch {
	case e.Progress != nil:
		m.Progress = *e.Progress
		return nil
	case e.State != nil:
		return m.stand(*e.State)
	case e.Log != nil:
		return nil
	case e.Opened != nil:
		m.recorder = trace.NewRecorder(e.Opened, m.Budget)
	case m.recorder == nil:
		return errors.New("an event of a session that is not open yet")
	}
	for _, r := range e.Records {
		if err := m.recorder.Write(r); err != nil {
			return err
		}
		if r.Step != nil {
			m.follow(r.Step)
		}
	}
	m.Trace = m.recorder.Snapshot()
	return nil
}

// stand takes in where the session says that it stands.
func (m *Mirror) stand(s State) error {
	if s.Begins != nil {
		m.Text, m.given = *s.Begins, s.Begins.Given
		s.Begins = nil
	}
	m.State = s
	if n := len(m.Text.Given); s.Given < 0 || s.Given > n {
		return fmt.Errorf("the session has given %d tokens, %d of them were told", s.Given, n)
	}
	m.Text.Given = m.Text.Given[:s.Given:s.Given]
	return nil
}

// follow moves the state on by a step.
func (m *Mirror) follow(s *trace.Step) {
	m.State.Step, m.State.Position = s.Index, s.Position+len(s.Tokens)
	if s.Token == nil {
		return
	}
	if len(m.Text.Given) < len(m.given) {
		m.given = slices.Clone(m.Text.Given)
	}
	m.given = append(m.given, Token{ID: *s.Token, Text: s.Text})
	m.Text.Given = slices.Clip(m.given)
	m.State.Given = len(m.given)
}
