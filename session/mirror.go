package session

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"gpuscope/trace"
)

// Mirror rebuilds the state and the trace of a session from the events of the session. Trace and Text are
// never changed in place: each event replaces them with a new version. A Mirror is not safe for concurrent
// use.
type Mirror struct {
	Trace    *trace.Trace // nil until the session is open
	State    State
	Text     Text // text up to the current step
	Progress Progress
	Budget   int64 // memory limit in bytes for steps and plans in Trace; 0 means trace.DefaultBudget

	recorder *trace.Recorder
	resuming bool   // a new engine is restoring the state of a crashed engine
	kept     []int  // token counts of steps of earlier texts whose positions are kept
	turns    []Turn // steps of the current text
	// The slice `given` holds the generated tokens and shares its array with Text.Given. After the session
	// has stepped back, `given` is longer than Text.Given. The next token is then written to a copy of the
	// array, because earlier versions of Text still use the array itself.
	given []Token
}

// Apply updates the mirror with one event. It returns an error if the event refers to an unknown step or
// plan.
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
		was := m.Trace.Graph // the original graph, without edited kernels
		was.Kernels = slices.DeleteFunc(slices.Clone(was.Kernels), func(k trace.Kernel) bool { return k.Of != "" })
		if !reflect.DeepEqual(&e.Opened.Graph, &was) {
			return errors.New("the restarted engine opened a different graph than the recorded one")
		}
		m.recorder.Continue()
		return nil
	case e.Opened != nil:
		m.recorder = trace.NewRecorder(e.Opened, m.Budget)
	case m.recorder == nil:
		return errors.New("the session sent an event before it was open")
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

// Left returns the state that another engine needs to continue from the same place after this engine has
// crashed.
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

// Continue announces that all later events come from a new engine, which replaces a crashed engine. The trace
// and the text are kept. The Mirror ignores State events of the new engine until this engine has restored the
// state that the method Left returned.
func (m *Mirror) Continue() { m.resuming = true }

// stand applies a State event to the mirror.
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
	for len(m.turns) > 0 && m.turns[len(m.turns)-1].Step > s.Step { // steps that were undone
		m.turns = m.turns[:len(m.turns)-1]
	}
	m.State = s
	if n := len(m.Text.Given); s.Given < 0 || s.Given > n {
		return fmt.Errorf("the session reports %d generated tokens, but only %d were received", s.Given, n)
	}
	m.Text.Given = m.Text.Given[:s.Given:s.Given]
	return nil
}

// begins records that a new text has replaced the previous text. The first `kept` positions of both texts are
// the same.
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

// follow updates the state and the text after a step.
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
