package session

import "sync"

// EventBuffer is the number of events that can wait for a busy front end before the steps wait too. It is
// many times the number of events that arrive during one frame of the screen.
const EventBuffer = 1 << 10

// Stream is the sending side of Events. It delivers events in the order in which they were sent. After the
// first event that is dropped it delivers no more, because a missing plan would make every later step
// wrong. Any goroutine may send.
type Stream struct {
	events  chan Event
	closing <-chan struct{}

	mu    sync.Mutex // held while a sender waits, to preserve the order of events
	ended bool
}

// NewStream returns a stream that buffers the given number of events. A sender waits for the reader if the
// buffer is full. After the channel closing is closed there may be no reader, so an event that finds the
// buffer full ends the stream.
func NewStream(closing <-chan struct{}, buffer int) *Stream {
	return &Stream{events: make(chan Event, buffer), closing: closing}
}

// Events returns the channel of the events that were sent.
func (s *Stream) Events() <-chan Event { return s.events }

// Send sends an event, unless the stream has ended.
func (s *Stream) Send(e Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	select {
	case s.events <- e: // a free place in the buffer is used even while the session closes
		return
	default:
	}
	select {
	case s.events <- e:
	case <-s.closing:
		s.end()
	}
}

// End closes the stream. The events sent before can still be read.
func (s *Stream) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end()
}

func (s *Stream) end() {
	if !s.ended {
		s.ended = true
		close(s.events)
	}
}
