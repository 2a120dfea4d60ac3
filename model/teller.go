package model

import "gpuscope/session"

// teller makes the events of a session beside its steps, in their order: what a trace says of a step is made
// while the next step runs, and not before it is known what that took.
type teller struct {
	stream  *session.Stream
	settled func() bool            // what they took is known of all steps
	held    []func() session.Event // until it is
	todo    chan func()
	done    chan struct{}
}

// maxLag is how many events the teller may lag before the steps wait for it.
const maxLag = 4

func newTeller(stream *session.Stream, settled func() bool) *teller {
	t := &teller{
		stream: stream, settled: settled, todo: make(chan func(), maxLag), done: make(chan struct{}),
	}
	go func() {
		defer close(t.done)
		for f := range t.todo {
			f()
		}
	}()
	return t
}

// tell sends the event that of makes. It is called on the teller's goroutine: what it uses must not change.
func (t *teller) tell(of func() session.Event) {
	t.held = append(t.held, of)
	if !t.settled() {
		return
	}
	batch := t.held
	t.held = nil
	t.todo <- func() { // one for all: steps would wait for room for each
		for _, of := range batch {
			t.stream.Send(of())
		}
	}
}

// flush returns when all is sent. No step is on its way.
func (t *teller) flush() {
	done := make(chan struct{})
	t.todo <- func() { close(done) }
	<-done
}

// end ends the stream after what was told.
func (t *teller) end() {
	close(t.todo)
	<-t.done
	t.stream.End()
}
