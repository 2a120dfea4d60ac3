package session

import "sync"

// EventBuffer is the number of events that can wait for a busy front end. If the buffer is full, the steps
// wait too. The buffer is much larger than the number of events during one frame of the screen.
const EventBuffer = 1 << 10

// Stream sends events to a front end, in the order of the calls of Send. After it has dropped one event, it
// drops all later events too, because a dropped plan would make every later step wrong. Any goroutine may
// call Send.
type Stream struct {
	events  chan Event
	closing <-chan struct{}

	mu    sync.Mutex // locked while a sender waits, to preserve the order of events
	ended bool
}

// NewStream returns a stream with a buffer for the given number of events. If the buffer is full, a sender
// waits for the reader. After the channel `closing` has been closed, there may be no reader, so the stream
// ends if the buffer is full.
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
	case s.events <- e: // use a free place in the buffer even if the session is closing
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
