package tui

import (
	"context"
	"sync"
	"time"

	"gpuscope/session"
	"gpuscope/tui/command"
	"gpuscope/tui/widget"
)

// pump reads events until the stream ends and forwards them in batches, at most 10 a second. The first batch
// after a pause is sent at once. Between batches, the events stay in the stream, which has room for many
// more, so that the program wakes up less often.
func pump(ctx context.Context, r *widget.Runner, s session.Session) {
	events := s.Events()
	batches := make(chan eventsMsg)
	r.Start(func(ctx context.Context) { // a separate goroutine, because Send may block
		for b := range batches {
			r.Send(b)
		}
		if ctx.Err() == nil {
			r.Send(endedMsg{command.ReasonOf(s)})
		}
	})
	defer close(batches)
	var held eventsMsg
	var last time.Time
	for {
		var out chan eventsMsg
		if len(held) > 0 {
			select {
			case <-ctx.Done():
				return
			case <-time.After(frameTime - time.Since(last)):
			}
			for len(events) > 0 {
				held = append(held, <-events)
			}
			out = batches
		}
		select {
		case <-ctx.Done():
			return
		case out <- held:
			held, last = nil, time.Now()
		case e, ok := <-events:
			if ok {
				held = append(held, e)
				continue
			}
			if len(held) > 0 {
				select {
				case batches <- held:
				case <-ctx.Done():
				}
			}
			return
		}
	}
}

// lastOpened holds the session to close when the program ends.
type lastOpened struct {
	mu      sync.Mutex
	session session.Session
}

func (l *lastOpened) keep(s session.Session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.session = s
}

func (l *lastOpened) close() {
	l.mu.Lock()
	s := l.session
	l.mu.Unlock()
	if s != nil {
		_ = s.Close()
	}
}
