package session

// Sender creates and sends the events of a session in order, on its own goroutine. The trace records of one
// step are created while the next step runs. Events are held back until the GPU times of all earlier steps
// have been read.
type Sender struct {
	stream  *Stream
	settled func() bool    // reports whether the GPU times of all ended steps are known
	held    []func() Event // events waiting for settled to return true
	todo    chan func()
	done    chan struct{}
}

// maxLag is the number of batches of events that may be queued before the steps wait for the Sender.
const maxLag = 4

// NewSender returns the sender of a session's events to a stream. settled reports whether the GPU times of
// all ended steps are known. settled is called only on the goroutine that calls the methods of the Sender.
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

// Send sends the event that of() returns. The Sender's goroutine calls of() later, so the data that of()
// reads must not change.
func (t *Sender) Send(of func() Event) {
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
