// Package session is what passes between a front end and a running model: commands one way, events the other.
// It is plain data only, so that the model can live in another process: Serve and Connect carry a Session
// over a pipe.
//
// The events of a session are a trace being written: its header, then plans and steps in the order in which
// they came to be, each plan before the first step that uses it. Mirror rebuilds the trace.Trace from them,
// so a front end shows a live run and an opened file with the same code.
package session

import (
	"context"
	"errors"
	"fmt"

	"gpuscope/trace"
)

// Session is a running model. Its methods may be called from any goroutine.
type Session interface {
	// Do runs one command and returns when it is done, cancelled through ctx or refused. Commands run one
	// after the other. The events a command causes are in Events before Do returns. A cancelled Run keeps the
	// tokens it has made.
	Do(ctx context.Context, c Command) error
	// Events is the stream of events; it must be drained. It is closed after Close, and where the session
	// cannot go on (it could not be opened, its device or its process was lost): then Close returns the
	// reason.
	Events() <-chan Event
	// Close ends the session and frees the device.
	Close() error
}

// CommandKind names a command.
type CommandKind string

// The commands.
const (
	Prompt   CommandKind = "prompt"   // replace the text by Text (or Tokens) and prefill it, in chunks
	Next     CommandKind = "next"     // decode one token
	Run      CommandKind = "run"      // decode N tokens (0: until the end token or the context's end)
	Previous CommandKind = "previous" // set the position back by one step
	Repeat   CommandKind = "repeat"   // run the current step again N times at its position
	// measure what timing costs: run the current step again with timing and without
	Observe CommandKind = "observe"
	Reset   CommandKind = "reset"  // position 0, no text
	Timing  CommandKind = "timing" // set the timing level to Level
)

// Command is one request of a front end.
type Command struct {
	Kind   CommandKind `json:"kind"`
	Text   string      `json:"text,omitempty"`
	Tokens []int       `json:"tokens,omitempty"` // instead of Text, taken as they are
	// Chunks are the sizes of the steps that prefill a prompt; the last one repeats until the prompt is used
	// up. Without them a step takes as many tokens as it can.
	Chunks []int `json:"chunks,omitempty"`
	// N is how many times. Of a Prompt it is how many tokens are to be generated in all: a prompt that leaves
	// no room for them is refused.
	N     int    `json:"n,omitempty"`
	Level string `json:"level,omitempty"` // off, step, block, dispatch
}

// ErrUsage is what errors.Is finds in the error of what was asked wrongly: it was refused before anything
// ran.
var ErrUsage = errors.New("wrong use")

// Refusef is an error that says what was asked wrongly. Its text is its own; errors.Is finds ErrUsage in it.
func Refusef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

type usageError struct{ error }

func (e usageError) Is(target error) bool { return target == ErrUsage }
func (e usageError) Unwrap() error        { return e.error }

// Event is one thing that happened; exactly one field is set.
type Event struct {
	Progress *Progress       `json:"progress,omitempty"` // on the way to Opened
	Opened   *trace.Trace    `json:"opened,omitempty"`   // the header: everything but plans, steps and events
	Plans    []trace.Plan    `json:"plans,omitempty"`
	Step     *trace.Step     `json:"step,omitempty"`
	Repeated *Repeated       `json:"repeated,omitempty"`
	State    *State          `json:"state,omitempty"`
	Observer *trace.Observer `json:"observer,omitempty"`
	Ceilings *trace.Ceilings `json:"ceilings,omitempty"`
	Clock    *trace.Clock    `json:"clock,omitempty"` // known better than in the header
	Log      *Log            `json:"log,omitempty"`
	Note     *trace.Event    `json:"note,omitempty"` // belongs to the trace
}

// Progress is how far opening has come.
type Progress struct {
	Phase string `json:"phase"` // "read model", "upload weights", "compile kernels", ...
	Done  int    `json:"done"`
	Total int    `json:"total"`
}

// Repeated carries the new samples of a repeated step: Samples[i] belongs to the step's i-th dispatch.
type Repeated struct {
	Step    int       `json:"step"`
	Samples [][]int64 `json:"samples"` // ns
}

// Token is a token id with its text.
type Token struct {
	ID   int    `json:"id"`
	Text string `json:"text"`
}

// State is where the session stands. It is sent before and after each command that changes it; in between
// Mirror follows the steps.
type State struct {
	Context  int     `json:"context"`   // positions the KV cache holds
	MaxChunk int     `json:"max_chunk"` // tokens a step takes at most
	Position int     `json:"position"`  // positions in use
	Step     int     `json:"step"`      // index of the current step in the trace, -1 before the first
	Prompt   []Token `json:"prompt,omitempty"`
	Text     []Token `json:"text,omitempty"` // generated up to the current step
	// Unfinished are the bytes of a character that the last token begins and does not end. They are in no
	// token's text. Over a pipe each is U+FFFD.
	Unfinished string `json:"unfinished,omitempty"`
	Ended      bool   `json:"ended,omitempty"` // the model gave its end token, or the context is full
	Running    bool   `json:"running,omitempty"`
	Timing     string `json:"timing"`
}

// Log is a line for the log view.
type Log struct {
	Level string `json:"level"` // info, warn, error
	Text  string `json:"text"`
}

// Mirror rebuilds from events what the session holds, within a budget of memory. It is not safe for
// concurrent use.
type Mirror struct {
	Trace    *trace.Trace // nil until opened. It never changes: what comes later is in another one
	State    State
	Progress Progress
	Budget   int64 // bytes of steps and plans that Trace keeps, the latest; 0: trace.DefaultBudget

	recorder *trace.Recorder
}

// Apply takes one event in. An event that names a step or a plan which is not there is refused.
func (m *Mirror) Apply(e Event) error {
	switch {
	case e.Progress != nil:
		m.Progress = *e.Progress
		return nil
	case e.State != nil:
		m.State = *e.State
		return nil
	case e.Log != nil:
		return nil
	case e.Opened != nil:
		m.recorder = trace.NewRecorder(e.Opened, m.Budget)
	case m.recorder == nil:
		return errors.New("an event of a session that is not open yet")
	}
	for _, r := range e.Records() {
		if err := m.recorder.Write(r); err != nil {
			return err
		}
	}
	if e.Step != nil {
		m.follow(e.Step)
	}
	m.Trace = m.recorder.Snapshot()
	return nil
}

// Records are what of an event belongs to a trace that has begun, in order.
func (e *Event) Records() []trace.Record {
	list := make([]trace.Record, 0, max(1, len(e.Plans)))
	for i := range e.Plans {
		list = append(list, trace.Record{Plan: &e.Plans[i]})
	}
	r := trace.Record{Step: e.Step, Event: e.Note, Observer: e.Observer, Ceilings: e.Ceilings, Clock: e.Clock}
	if e.Repeated != nil {
		r.Samples = &trace.Samples{Step: e.Repeated.Step, Samples: e.Repeated.Samples}
	}
	if r != (trace.Record{}) {
		list = append(list, r)
	}
	return list
}

// follow moves the state on by a step.
func (m *Mirror) follow(s *trace.Step) {
	m.State.Step, m.State.Position = s.Index, s.Position+len(s.Tokens)
	if s.Token != nil {
		m.State.Text = append(m.State.Text[:len(m.State.Text):len(m.State.Text)],
			Token{ID: *s.Token, Text: s.Text})
	}
}
