package session

import "sync"

// EventBuffer is the number of events that can wait for a front end that is busy. If more events come, the
// steps wait too. EventBuffer is many times the number of events that arrive during one frame of the screen.
const EventBuffer = 1 << 10

// Stream sends the events that a front end receives from Events, in the order of the calls of Send. After
// dropping one event it drops all later events too, because without a dropped plan every later step would be
// wrong. Any goroutine may call Send.
type Stream struct {
	events  chan Event
	closing <-chan struct{}

	mu    sync.Mutex // locked while a sender waits, to preserve the order of events
	ended bool
}

// NewStream returns a stream with a buffer for the given number of events. If the buffer is full, a sender
// waits for the reader. After the channel `closing` has been closed, there may be no reader: if the buffer is
// full then, the stream ends.
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
