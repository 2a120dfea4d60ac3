package session

// Sender creates the events of a session and sends them in order, on its own goroutine. The trace records of
// a step are therefore created while the next step runs. A Sender holds events back until the GPU times of
// all completed steps have been read.
type Sender struct {
	stream  *Stream
	settled func() bool    // reports whether the GPU times of all completed steps are known
	held    []func() Event // events that wait until settled returns true
	todo    chan func()
	done    chan struct{}
}

// maxLag is the number of batches of events that the queue of the Sender can hold. If the queue is full, the
// next step waits.
const maxLag = 4

// NewSender returns a Sender that sends to a stream. `settled` reports whether the GPU times of all completed
// steps are known. It is called only on the goroutine that calls the Sender's methods.
func NewSender(stream *Stream, settled func() bool) *Sender {
	t := &Sender{
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

// Send sends the event that the function `of` returns. The Sender's goroutine calls this function later, so
// the data that the function reads must not change after Send.
func (t *Sender) Send(of func() Event) {
	t.held = append(t.held, of)
	if !t.settled() {
		return
	}
	batch := t.held
	t.held = nil
	// The batch is queued as one entry because the queue has only maxLag entries.
	t.todo <- func() {
		for _, of := range batch {
			t.stream.Send(of())
		}
	}
}

// Flush waits until all events have been sent. It must not be called while a step is running.
func (t *Sender) Flush() {
	done := make(chan struct{})
	t.todo <- func() { close(done) }
	<-done
}

// End sends the queued events and ends the stream.
func (t *Sender) End() {
	close(t.todo)
	<-t.done
	t.stream.End()
}
