package tui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"gpuscope/session"
)

// runner owns every goroutine of the program, so that each has somebody who waits for it, none outlives the
// program unseen, and a panic in any of them ends the program with the terminal restored.
type runner struct {
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	send   func(any) // hands a message to the event loop
	crash  func(*Panic)

	mu      sync.Mutex
	session session.Session
}

func newRunner(ctx context.Context, send func(any), crash func(*Panic)) *runner {
	r := &runner{send: send, crash: crash}
	r.ctx, r.cancel = context.WithCancel(ctx)
	return r
}

// start runs f in a goroutine of its own.
func (r *runner) start(f func(context.Context)) {
	r.wg.Add(1)
	go func() {
		defer r.wg.Done()
		defer r.guard()
		f(r.ctx)
	}()
}

// guard turns a panic into the end of the program.
func (r *runner) guard() {
	if v := recover(); v != nil {
		r.crash(&Panic{Value: v, Stack: debug.Stack()})
	}
}

// errEnded is the reason of a session that has none.
var errEnded = errors.New("its events ended")

// reasonOf is why a session whose events have ended is over.
func reasonOf(s session.Session) error {
	return cmp.Or(s.Close(), errEnded)
}

// Panic is a bug that ended the program. The terminal has been restored when Run returns it.
type Panic struct {
	Value any
	Stack []byte
}

func (p *Panic) Error() string {
	return fmt.Sprintf("a bug ended the program: panic: %v; please report it with the lines above", p.Value)
}

// pump reads events for as long as there are any and hands them on in batches, at most 10 a second; the first
// after a pause at once. It never lets the session wait for the screen: in between events stay in the stream,
// which has room for many more, for to wake up for each costs more than most are worth.
func (r *runner) pump(ctx context.Context, s session.Session) {
	events := s.Events()
	batches := make(chan eventsMsg)
	r.start(func(ctx context.Context) { // a message may have to wait for the event loop; reading does not
		for b := range batches {
			r.send(b)
		}
		if ctx.Err() == nil {
			r.send(endedMsg{reasonOf(s)})
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

// keep remembers the session, to close it when the program ends.
func (r *runner) keep(s session.Session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.session = s
}

// end closes the session and waits for all goroutines, but not longer than leaveWithin: a GPU that hangs must
// not keep a person from leaving.
func (r *runner) end() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer r.guard()
		r.mu.Lock()
		s := r.session
		r.mu.Unlock()
		if s != nil {
			_ = s.Close()
		}
		r.wg.Wait()
	}()
	select {
	case <-done:
	case <-time.After(leaveWithin):
	}
}
