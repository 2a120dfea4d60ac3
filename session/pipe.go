package session

// This file defines the protocol of a session over a pipe. The engine first sends a line of text that names
// the protocol. Then the front end sends requests, and the engine sends events and answers. Each request has
// an ID, and its answer has the same ID. The answer with ID 0 reports whether the model could be opened. All
// messages use the binary encoding of wire.go.
//
// When its input ends, the engine ends too. It therefore never outlives its front end, even if the front end
// crashes.

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

// helloWords is the prefix of the engine's first line. The fingerprint of the protocol follows.
const helloWords = "gpuscope session "

// request is sent to the engine: a command, or the cancellation of the command with this ID.
type request struct {
	ID     int      `json:"id"`
	Do     *Command `json:"do,omitempty"`
	Cancel bool     `json:"cancel,omitempty"`
}

// message is sent by the engine: an event, or the answer to a request.
type message struct {
	Event  *Event  `json:"event,omitempty"`
	Answer *answer `json:"answer,omitempty"`
}

// answer completes the request with this ID. Error is nil if the request succeeded.
type answer struct {
	ID    int          `json:"id"`
	Reply Reply        `json:"reply"`
	Error *remoteError `json:"error,omitempty"`
}

// remoteError is an error that was sent over the pipe. Text is the message. If the original error wraps a
// sentinel error in the map kinds, Kind is its key. Otherwise Kind is "".
type remoteError struct {
	Kind string `json:"kind,omitempty"`
	Text string `json:"text"`
}

// kinds lists the sentinel errors for which errors.Is also works on the receiving side of the pipe.
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

// Error returns the message of the original error.
func (e *remoteError) Error() string { return e.Text }

// Unwrap returns the sentinel error of the error's kind, or nil if it has none.
func (e *remoteError) Unwrap() error { return kinds[e.Kind] }

// asError returns e as an error. A nil pointer becomes a nil error.
func (e *remoteError) asError() error {
	if e == nil {
		return nil
	}
	return e
}

// protocol returns a fingerprint of the message types of this program. It is computed from the Go types, so
// it changes whenever a type changes, even in package trace. Both ends of the pipe are the same program. They
// have the same fingerprint, unless the program file was replaced while the front end was running.
var protocol = sync.OnceValue(func() string {
	sum := fnv.New64a()
	fmt.Fprint(sum, wireForm)
	describe(sum, reflect.TypeFor[request](), map[reflect.Type]bool{})
	describe(sum, reflect.TypeFor[message](), map[reflect.Type]bool{})
	return fmt.Sprintf("%016x", sum.Sum64())
})

// describe writes every property of a type that affects the encoding of its values.
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

// ErrNotEngine means that the started process did not send the first line of a gpuscope engine.
var ErrNotEngine = errors.New("the process that was started is not a gpuscope engine")

// ProtocolError is the error of a session whose engine comes from another version of this program.
type ProtocolError struct{ Engine, Own string }

func (e *ProtocolError) Error() string {
	return fmt.Sprintf("the engine uses session protocol %.16q, this program uses %q: the gpuscope file was "+
		"replaced while it ran; restart gpuscope", e.Engine, e.Own)
}

// greeted reads the first line and checks that an engine with this program's protocol sent it.
func (r *wireReader) greeted() error {
	line, err := r.in.ReadSlice('\n')
	theirs, ok := strings.CutPrefix(strings.TrimSpace(string(line)), helloWords)
	switch {
	case errors.Is(err, io.EOF): // the process ended before its first line
		return err
	case err != nil || !ok:
		return errReason{ErrNotEngine}
	case theirs != protocol():
		return errReason{&ProtocolError{Engine: theirs, Own: protocol()}}
	}
	return nil
}
