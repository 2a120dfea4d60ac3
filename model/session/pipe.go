package session

// A session over a pipe. Both ways run JSON values, one a line. The front end sends requests, each with an id
// that the answer repeats; the engine sends events and answers. Answer 0 is that of opening. The end of its
// input tells the engine to close, so that it never outlives its front end, whatever became of that.

import (
	"context"
	"errors"
)

// request goes to the engine: a command, or the request to cancel the command of that id.
type request struct {
	ID     int      `json:"id"`
	Do     *Command `json:"do,omitempty"`
	Cancel bool     `json:"cancel,omitempty"`
}

// message comes from the engine: an event, or the answer to a request.
type message struct {
	Event  *Event  `json:"event,omitempty"`
	Answer *answer `json:"answer,omitempty"`
}

// answer ends the request of its id; Error is absent where it was done.
type answer struct {
	ID    int          `json:"id"`
	Error *remoteError `json:"error,omitempty"`
}

// remoteError is an error that crossed the pipe: its text, and the one sentinel it still wraps.
type remoteError struct {
	Kind string `json:"kind,omitempty"`
	Text string `json:"text"`
}

// kinds are the errors that errors.Is still finds on the other side.
var kinds = map[string]error{
	"canceled": context.Canceled,
	"deadline": context.DeadlineExceeded,
	"closed":   ErrClosed,
	"usage":    ErrUsage,
}

// ErrClosed is the error of a command to a session that is closed, or whose engine is gone.
var ErrClosed = errors.New("the session is closed")

func toRemote(err error) *remoteError {
	if err == nil {
		return nil
	}
	for kind, sentinel := range kinds {
		if errors.Is(err, sentinel) {
			return &remoteError{Kind: kind, Text: err.Error()}
		}
	}
	return &remoteError{Text: err.Error()}
}

// Error is the text of the error on its side of the pipe.
func (e *remoteError) Error() string { return e.Text }

// Unwrap is the sentinel of the error's kind.
func (e *remoteError) Unwrap() error { return kinds[e.Kind] }

// asError keeps a nil *remoteError a nil error.
func (e *remoteError) asError() error {
	if e == nil {
		return nil
	}
	return e
}
