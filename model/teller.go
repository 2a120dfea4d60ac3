package model

import "gpuscope/session"

// teller creates and sends the events of a session in order, on its own goroutine. The trace records of one
// step are created while the next step runs. Events are held back until the GPU times of all earlier steps
// have been read.
type teller struct {
	stream  *session.Stream
	settled func() bool            // reports whether the GPU times of all ended steps are known
	held    []func() session.Event // events waiting for settled to return true
	todo    chan func()
	done    chan struct{}
}

// maxLag is the number of batches of events that may be queued before the steps wait for the teller.
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

// tell sends the event that of() returns. The teller's goroutine calls of() later, so the data that of()
// reads must not change.
func (t *teller) tell(of func() session.Event) {
	t.held = append(t.held, of)
	if !t.settled() {
		return
	}
	batch := t.held
	t.held = nil
	// The whole batch is one entry, because each entry takes one of the maxLag places in the queue.
	t.todo <- func() {
		for _, of := range batch {
			t.stream.Send(of())
		}
	}
}

// flush waits until all events have been sent. It must not be called while a step is running.
func (t *teller) flush() {
	done := make(chan struct{})
	t.todo <- func() { close(done) }
	<-done
}

// end sends the queued events and ends the stream.
func (t *teller) end() {
	close(t.todo)
	<-t.done
	t.stream.End()
}
