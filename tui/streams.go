package tui

import (
	"context"
	"sync"
	"time"

	"gpuscope/session"
	"gpuscope/tui/command"
	"gpuscope/tui/widget"
)

// pump reads events for as long as there are any and hands them on in batches, at most 10 a second; the first
// after a pause at once. It never lets the session wait for the screen: in between events stay in the stream,
// which has room for many more, for to wake up for each costs more than most are worth.
func pump(ctx context.Context, r *widget.Runner, s session.Session) {
	events := s.Events()
	batches := make(chan eventsMsg)
	r.Start(func(ctx context.Context) { // a message may have to wait for the event loop; reading does not
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

// lastOpened is the session to close when the program ends.
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
