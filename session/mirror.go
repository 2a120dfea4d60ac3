package session

import (
	"errors"
	"fmt"
	"reflect"
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
	resuming bool   // another engine is to go on where the last one was
	kept     []int  // tokens of the steps of former texts whose positions the text kept
	turns    []Turn // the steps of the text
	// given is the longest of the lists of one array that Text.Given was: a token is added in place after
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
	case e.Opened != nil && m.resuming:
		was := m.Trace.Graph // without what took the place of kernels since
		was.Kernels = slices.DeleteFunc(slices.Clone(was.Kernels), func(k trace.Kernel) bool { return k.Of != "" })
		if !reflect.DeepEqual(&e.Opened.Graph, &was) {
			return errors.New("the restarted engine opened a different graph than the recorded one")
		}
		m.recorder.Continue()
		return nil
	case e.Opened != nil:
		m.recorder = trace.NewRecorder(e.Opened, m.Budget)
	case m.recorder == nil:
		return errors.New("event received before the session was open")
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

// Left is what another engine needs to stand where this one stood.
func (m *Mirror) Left() *Left {
	l := &Left{
		Timing: m.State.Timing, Chunk: m.State.Chunk, Kept: m.kept, Turns: slices.Clone(m.turns),
		Talk: m.Text.Talk,
	}
	for _, t := range m.Text.Prompt {
		l.Prompt = append(l.Prompt, t.ID)
	}
	if m.Trace != nil && len(m.Trace.Steps) > 0 {
		s := &m.Trace.Steps[len(m.Trace.Steps)-1]
		l.Last = &Shape{Step: s.Index, Position: s.Position, Tokens: len(s.Tokens)}
	}
	return l
}

// Continue says that the events to come are of another engine for the same model. Where it says that it
// stands is left out before it has taken up what Left says: the trace and the text go on.
func (m *Mirror) Continue() { m.resuming = true }

// stand takes in where the session says that it stands.
func (m *Mirror) stand(s State) error {
	if m.resuming && !s.Resumed {
		return nil
	}
	again := s.Resumed
	m.resuming, s.Resumed = false, false
	if s.Begins != nil {
		m.Text, m.given = *s.Begins, s.Begins.Given
		if !again {
			m.begins(s.Position)
		}
		s.Begins = nil
	}
	for len(m.turns) > 0 && m.turns[len(m.turns)-1].Step > s.Step { // it was set back
		m.turns = m.turns[:len(m.turns)-1]
	}
	m.State = s
	if n := len(m.Text.Given); s.Given < 0 || s.Given > n {
		return fmt.Errorf("the session generated %d tokens, but reported %d", s.Given, n)
	}
	m.Text.Given = m.Text.Given[:s.Given:s.Given]
	return nil
}

// begins is another text that keeps so many positions of the former.
func (m *Mirror) begins(kept int) {
	sizes := m.kept
	for _, t := range m.turns {
		sizes = append(sizes, t.Tokens)
	}
	m.kept, m.turns = nil, nil
	for _, n := range sizes {
		if n = min(n, kept); n > 0 {
			m.kept, kept = append(m.kept, n), kept-n
		}
	}
}

// follow moves the state on by a step.
func (m *Mirror) follow(s *trace.Step) {
	m.turns = append(m.turns, Turn{Step: s.Index, Tokens: len(s.Tokens), Token: s.Token})
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
