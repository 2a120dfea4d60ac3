// Package session defines the interface between a front end and a running model. The front end sends
// commands; the session returns replies and sends events. All of them are plain data, so the model can run
// in another process: Serve and Connect carry a Session over a pipe.
//
// A reply is the result of one command and goes to its caller. Events go to every viewer of the session:
//   - the growing trace: its header first, then plans and steps in order, each plan before the first step
//     that uses it
//   - the state of the session
//   - progress and log lines
//
// Mirror rebuilds the trace.Trace from the events, so a front end uses the same code for a live run and for
// an opened file.
//
// Every error is one line. Callers can test for three errors with errors.Is. ErrUsage means that the request
// was refused before anything ran. ErrClosed means that the session was already closed. ErrLost means that
// the engine process ended unexpectedly.
package session

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"gpuscope/trace"
)

// Session is a running model. Its methods may be called from any goroutine.
type Session interface {
	// Do runs one command and returns when the command has finished, failed or been cancelled through ctx.
	// Commands run one at a time, in the order in which they arrive. All events of a command are sent before
	// Do returns. A cancelled Run keeps the tokens generated so far, and the reply reports their number.
	Do(ctx context.Context, c Command) (Reply, error)
	// Events returns the channel of events, from which the caller must receive all the time. The channel is
	// closed after Close. It is also closed if the session cannot continue, because the model could not be
	// opened, or the device or the engine process was lost. Close then returns the reason. While the session
	// closes, events may be dropped if nobody receives. After a dropped event, all later events are dropped
	// too.
	Events() <-chan Event
	// Close ends the session and frees the device. The events of commands that have returned can still be
	// read from Events afterwards.
	Close() error
}

// ErrUsage marks an invalid request, which was refused before anything ran. Test for it with errors.Is.
var ErrUsage = errors.New("invalid request")

// Refusef returns a formatted error for an invalid request. errors.Is(err, ErrUsage) is true for this error.
func Refusef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

type usageError struct{ error }

func (e usageError) Is(target error) bool { return target == ErrUsage }
func (e usageError) Unwrap() error        { return e.error }

// ErrClosed is the error of a command to a session that is closed, or whose engine has crashed.
var ErrClosed = errors.New("the session is closed")

// ErrLost is wrapped by the error of a session whose engine ended without reporting a reason. Test for it
// with errors.Is.
var ErrLost = errors.New("the engine process ended unexpectedly")

// Event reports one thing that happened in a session. Exactly one field is set.
type Event struct {
	Progress *Progress      `json:"progress,omitempty"` // while the model opens, or during a command
	Opened   *trace.Trace   `json:"opened,omitempty"`   // the trace without plans, steps and events
	Records  []trace.Record `json:"records,omitempty"`  // additions to the trace; plans precede their steps
	State    *State         `json:"state,omitempty"`
	Log      *Log           `json:"log,omitempty"`
}

// Progress reports how much of the current phase is done, while a model opens or during a command that
// measures.
type Progress struct {
	Phase string `json:"phase"` // "read model", "upload weights", "compile kernels", ...
	Done  int    `json:"done"`
	Total int    `json:"total"`
	Bytes bool   `json:"bytes,omitempty"` // Done and Total count bytes
	// PerSecond is the average increase of Done per second since the phase began; 0 if not known.
	PerSecond float64 `json:"per_s,omitempty"`
}

// Left returns about how long the phase still takes. The bool is false if this is not known.
func (p *Progress) Left() (d time.Duration, ok bool) {
	if p.PerSecond <= 0 || p.Done > p.Total {
		return 0, false
	}
	return time.Duration(float64(p.Total-p.Done) / p.PerSecond * 1e9), true
}

// Percent formats the progress as a percentage: "25 %", or "25 %, 6 s left" if the rate is known.
func (p *Progress) Percent() string {
	said := fmt.Sprintf("%d %%", 100*p.Done/p.Total)
	if left, ok := p.Left(); ok && p.Done < p.Total {
		said += fmt.Sprintf(", %.0f s left", math.Ceil(left.Seconds()))
	}
	return said
}

// Amount formats the progress as "3/12", or as "1200/4400 MB at 830 MB/s" if Done and Total count bytes. If
// the total is 100 and not a number of bytes, it formats the progress like Percent.
func (p *Progress) Amount() string {
	switch {
	case !p.Bytes && p.Total == 100:
		return p.Percent()
	case !p.Bytes:
		return fmt.Sprintf("%d/%d", p.Done, p.Total)
	case p.PerSecond == 0:
		return fmt.Sprintf("%d/%d MB", p.Done/1e6, p.Total/1e6)
	}
	return fmt.Sprintf("%d/%d MB at %.0f MB/s", p.Done/1e6, p.Total/1e6, p.PerSecond/1e6)
}

// State is the current state of the session. It is sent before and after each command that changes the state.
// During a command, Mirror updates the state from the recorded steps. The state does not contain the
// generated tokens, because the steps contain them.
type State struct {
	Context  int          `json:"context"`         // capacity of the KV cache in positions
	MaxChunk int          `json:"max_chunk"`       // maximum number of tokens in a step
	Position int          `json:"position"`        // number of positions in use
	Step     int          `json:"step"`            // index of the current step, -1 before the first
	Given    int          `json:"given"`           // number of tokens generated up to the current step
	Ended    bool         `json:"ended,omitempty"` // the end token was generated, or the context is full
	Running  bool         `json:"running,omitempty"`
	Timing   trace.Timing `json:"timing"`
	Chunk    int          `json:"chunk,omitempty"` // maximum prompt tokens per step; 0 means MaxChunk
	// Upto is nil if the current step is complete. Otherwise the step was run again only up to this dispatch,
	// and the outputs of later dispatches are not available.
	Upto *trace.DispatchID `json:"upto,omitempty"`
	// Unfinished holds the first bytes of a character that the last token has not completed. The Text of a
	// token never contains these bytes.
	Unfinished string `json:"unfinished,omitempty"`
	// Edited holds the names of the edited kernels that currently replace kernels of the graph.
	Edited []string `json:"edited,omitempty"`
	// Program is true if each step executes a program that is not a language model. The Text of a Prompt and
	// the tokens of Text.Prompt are then live dims ("0.1=7"). Position is the number of executions since the
	// last reset.
	Program bool `json:"program,omitempty"`
	// Begins is the new text if it has just replaced the previous text, otherwise nil. After a Reset the new
	// text is empty.
	Begins *Text `json:"begins,omitempty"`
	// Resumed reports that another engine has restored the text in Begins after a crash.
	Resumed bool `json:"resumed,omitempty"`
}

// Text is the prompt of a session and the tokens generated from it.
type Text struct {
	Prompt []Token `json:"prompt,omitempty"`
	Given  []Token `json:"given,omitempty"`
	// Talk holds the messages and answers of a conversation, except the latest answer; nil if the text is not
	// a conversation.
	Talk []Exchange `json:"talk,omitempty"`
}

// Exchange is one message of the user in a conversation, with the model's answer.
type Exchange struct {
	User   string `json:"user"`
	Answer string `json:"answer,omitempty"`
	// From is the number of tokens before the answer, counted from the start of the text. To is the number of
	// tokens up to the end of the answer, or -1 while the answer is incomplete. Both are -1 if the chat
	// template later rendered this answer differently.
	From int `json:"from"`
	To   int `json:"to"`
}

// Token is a token ID and its text.
type Token struct {
	ID   int    `json:"id"`
	Text string `json:"text"`
}

// Log is a line for the log view.
type Log struct {
	Level string `json:"level"` // info, warn, error
	Text  string `json:"text"`
}
