// Package session is what passes between a front end and a running model: commands one way, replies and
// events the other. It is plain data only, so that the model can live in another process: Serve and Connect
// carry a Session over a pipe.
//
// A reply says what its command gave, to the one who asked. The events of a session are for everybody who
// looks: a trace being written (its header, then plans and steps in the order in which they came to be, each
// plan before the first step that uses it), where the session stands, progress, and lines for a log. Mirror
// rebuilds the trace.Trace from them, so a front end shows a live run and an opened file with the same code.
//
// Errors say in one line what was asked or lost; errors.Is finds ErrUsage in what was refused before anything
// ran, ErrClosed in what came too late, and ErrLost where an engine process ended by itself.
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
	// after the other, in the order in which they came. The events a command causes are in Events before Do
	// returns. A cancelled Run keeps the tokens it has made; the reply says how many.
	Do(ctx context.Context, c Command) (Reply, error)
	// Events is the stream of events; it must be drained. It is closed after Close, and where the session
	// cannot go on (it could not be opened, its device or its process was lost): then Close returns the
	// reason. Whoever has seen an event has seen all before it: once one is left out, because the session
	// closes and nobody drains, no other comes.
	Events() <-chan Event
	// Close ends the session and frees the device. What commands that have returned caused can still be read
	// from Events.
	Close() error
}

// ErrUsage is what errors.Is finds in the error of what was asked wrongly: it was refused before anything
// ran.
var ErrUsage = errors.New("invalid request")

// Refusef is an error that says what was asked wrongly. Its text is its own; errors.Is finds ErrUsage in it.
func Refusef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

type usageError struct{ error }

func (e usageError) Is(target error) bool { return target == ErrUsage }
func (e usageError) Unwrap() error        { return e.error }

// ErrClosed is the error of a command to a session that is closed, or whose engine is gone.
var ErrClosed = errors.New("the session is closed")

// ErrLost is what errors.Is finds in the reason of a session whose engine ended without a word on why.
var ErrLost = errors.New("the engine process ended unexpectedly")

// Event is one thing that happened; exactly one field is set.
type Event struct {
	Progress *Progress      `json:"progress,omitempty"` // on the way to Opened, or through a command
	Opened   *trace.Trace   `json:"opened,omitempty"`   // the header: everything but plans, steps and events
	Records  []trace.Record `json:"records,omitempty"`  // what the trace gained; a step comes with its plans
	State    *State         `json:"state,omitempty"`
	Log      *Log           `json:"log,omitempty"`
}

// Progress is how far opening, or a command that measures, has come.
type Progress struct {
	Phase string `json:"phase"` // "read model", "upload weights", "compile kernels", ...
	Done  int    `json:"done"`
	Total int    `json:"total"`
	Bytes bool   `json:"bytes,omitempty"` // Done and Total are bytes, not things
	// PerSecond is how many were done in a second since the phase began; 0 where that is not told.
	PerSecond float64 `json:"per_s,omitempty"`
}

// Amount is how far it has come: "3/12", of a hundred "25 %", of bytes "1200/4400 MB at 830 MB/s".
func (p *Progress) Amount() string {
	switch {
	case !p.Bytes && p.Total == 100:
		return fmt.Sprintf("%d %%", p.Done)
	case !p.Bytes:
		return fmt.Sprintf("%d/%d", p.Done, p.Total)
	case p.PerSecond == 0:
		return fmt.Sprintf("%d/%d MB", p.Done/1e6, p.Total/1e6)
	}
	return fmt.Sprintf("%d/%d MB at %.0f MB/s", p.Done/1e6, p.Total/1e6, p.PerSecond/1e6)
}

// State is where the session stands. It is sent before and after each command that changes it; in between
// Mirror follows the steps. It does not repeat the text, which the steps tell.
type State struct {
	Context  int          `json:"context"`         // positions the KV cache holds
	MaxChunk int          `json:"max_chunk"`       // tokens a step takes at most
	Position int          `json:"position"`        // positions in use
	Step     int          `json:"step"`            // index of the current step, -1 before the first
	Given    int          `json:"given"`           // tokens of the text generated up to the current step
	Ended    bool         `json:"ended,omitempty"` // the model gave its end token, or the context is full
	Running  bool         `json:"running,omitempty"`
	Timing   trace.Timing `json:"timing"`
	Chunk    int          `json:"chunk,omitempty"` // tokens a step of a prompt takes, 0: MaxChunk
	// Upto is the dispatch up to which the current step was run again, if it was: what later ones write is
	// not there.
	Upto *trace.DispatchID `json:"upto,omitempty"`
	// Unfinished are the bytes of a character that the last token begins and does not end. They are in no
	// token's text.
	Unfinished string `json:"unfinished,omitempty"`
	// Edited are the names of what runs in place of kernels of the graph.
	Edited []string `json:"edited,omitempty"`
	// Begins is there where another text takes the place of the former: empty after a Reset.
	Begins *Text `json:"begins,omitempty"`
	// Resumed says that Begins is the text of an engine that has gone.
	Resumed bool `json:"resumed,omitempty"`
}

// Text is what a session has read and what it gave.
type Text struct {
	Prompt []Token `json:"prompt,omitempty"`
	Given  []Token `json:"given,omitempty"`
	// Talk are the exchanges of a conversation, without the last answer; nil where the text is a plain one.
	Talk []Exchange `json:"talk,omitempty"`
}

// Exchange is a turn of the user in a conversation, with the model's answer.
type Exchange struct {
	User   string `json:"user"`
	Answer string `json:"answer,omitempty"`
	// From and To are how many tokens of the text come before the answer, and before what follows it; -1
	// where the template has since rendered this part differently, or the answer has not ended.
	From int `json:"from"`
	To   int `json:"to"`
}

// Token is a token id with its text.
type Token struct {
	ID   int    `json:"id"`
	Text string `json:"text"`
}

// Log is a line for the log view.
type Log struct {
	Level string `json:"level"` // info, warn, error
	Text  string `json:"text"`
}
