package session

// A session over a pipe. The engine says hello first, in a line of text. Then the front end sends requests,
// each with an id that the answer repeats; the engine sends events and answers, all in the binary form of
// wire.go. Answer 0 is that of opening. The end of its input tells the engine to close, so that it never
// outlives its front end, whatever became of that.

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"reflect"
	"strings"
	"sync"
)

// helloWords stand before the protocol in the first line of an engine.
const helloWords = "gpuscope session "

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
	Reply Reply        `json:"reply"`
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

// protocol names the messages that this program speaks: a fingerprint of their types, so that no change of
// them, in package trace neither, can be forgotten. Both ends are one program, unless its file was replaced
// while it ran.
var protocol = sync.OnceValue(func() string {
	sum := fnv.New64a()
	fmt.Fprint(sum, wireForm)
	describe(sum, reflect.TypeFor[request](), map[reflect.Type]bool{})
	describe(sum, reflect.TypeFor[message](), map[reflect.Type]bool{})
	return fmt.Sprintf("%016x", sum.Sum64())
})

// describe writes what of a type shows in its messages.
func describe(w io.Writer, t reflect.Type, seen map[reflect.Type]bool) {
	fmt.Fprint(w, t.Kind())
	if seen[t] {
		fmt.Fprint(w, t)
		return
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		describe(w, t.Elem(), seen)
	case reflect.Map:
		describe(w, t.Key(), seen)
		describe(w, t.Elem(), seen)
	case reflect.Struct:
		for f := range t.Fields() {
			fmt.Fprintf(w, "{%s %q", f.Name, f.Tag)
			describe(w, f.Type, seen)
		}
	}
}

// ErrNotEngine is the reason of a session whose process did not answer as an engine.
var ErrNotEngine = errors.New("the engine process did not answer as an engine of gpuscope")

// ProtocolError is the reason of a session whose engine is of another version of this program.
type ProtocolError struct{ Engine, Own string }

func (e *ProtocolError) Error() string {
	return fmt.Sprintf("the engine has session protocol %.16q, this program %q: gpuscope's file was "+
		"replaced while it ran; restart gpuscope", e.Engine, e.Own)
}

// greeted says whether what comes is from an engine that speaks this program's protocol: its first line.
func (r *wireReader) greeted() error {
	line, err := r.in.ReadSlice('\n')
	theirs, ok := strings.CutPrefix(strings.TrimSpace(string(line)), helloWords)
	switch {
	case errors.Is(err, io.EOF): // it ended before it could
		return err
	case err != nil || !ok:
		return errReason{ErrNotEngine}
	case theirs != protocol():
		return errReason{&ProtocolError{Engine: theirs, Own: protocol()}}
	}
	return nil
}
