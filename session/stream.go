package session

import "sync"

// EventBuffer is how many events wait for a front end that is busy before the steps wait too: many more than
// there are in the time of a frame.
const EventBuffer = 1 << 10

// Stream is the sending side of Events. Its events come out in the order in which they were sent, and after
// the first one that is left out no other comes: a plan that was dropped would make every later step wrong.
// Any goroutine may send.
type Stream struct {
	events  chan Event
	closing <-chan struct{}

	mu    sync.Mutex // held while a sender waits, so that senders keep their order
	ended bool
}

// NewStream is a stream that holds so many events for whoever reads it, and waits for that one until closing
// is closed. From then on nobody may be reading: what finds no room ends the stream.
func NewStream(closing <-chan struct{}, buffer int) *Stream {
	return &Stream{events: make(chan Event, buffer), closing: closing}
}

// Events are the events that were sent.
func (s *Stream) Events() <-chan Event { return s.events }

// Send sends an event, unless the stream has ended.
func (s *Stream) Send(e Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	select {
	case s.events <- e: // while the session closes too, as long as there is room
		return
	default:
	}
	select {
	case s.events <- e:
	case <-s.closing:
		s.end()
	}
}

// End closes the stream: what was sent can be read, and nothing comes after it.
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
