package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
)

// Serve opens a session and serves it to the front end that Connect made at the other end of a pipe, until
// the requests end, the front end can no longer be written to, or ctx is cancelled. Then it closes the
// session. The events that open emits go out at once: progress. An error of open is the front end's to show,
// and Serve's too.
func Serve(ctx context.Context, requests io.Reader, messages io.Writer,
	open func(ctx context.Context, emit func(Event)) (Session, error),
) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s := &server{out: messages, stop: cancel, running: map[int]context.CancelFunc{}}

	// The reader starts before open does: a front end that goes away while a model loads is not waited for.
	incoming := make(chan command)
	go s.read(ctx, requests, incoming)

	sess, err := open(ctx, s.event)
	_ = s.send(message{Answer: &answer{ID: 0, Error: toRemote(err)}})
	if err != nil {
		return err
	}
	return s.serve(ctx, sess, incoming)
}

// errFrontEndGone ends Serve as it should end: the front end closed its side.
var errFrontEndGone = errors.New("the front end is gone")

type server struct {
	writing sync.Mutex
	out     io.Writer
	stop    context.CancelCauseFunc

	mu      sync.Mutex
	running map[int]context.CancelFunc // commands under way
}

// command is a request under way: ctx ends when the front end cancels it.
type command struct {
	request
	ctx context.Context
}

// read hands on commands and cancels them, in the order of their requests, until the input ends.
func (s *server) read(ctx context.Context, r io.Reader, incoming chan<- command) {
	in := json.NewDecoder(r)
	for {
		var q request
		if err := in.Decode(&q); err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrClosedPipe) {
				err = fmt.Errorf("read request: %w", err)
			} else {
				err = errFrontEndGone
			}
			s.stop(err)
			return
		}
		if q.Cancel {
			s.mu.Lock()
			if cancel := s.running[q.ID]; cancel != nil {
				cancel()
			}
			s.mu.Unlock()
			continue
		}
		each, cancel := context.WithCancel(ctx)
		s.mu.Lock()
		s.running[q.ID] = cancel
		s.mu.Unlock()
		select {
		case incoming <- command{q, each}:
		case <-ctx.Done():
			return
		}
	}
}

// serve pumps events out and commands in. An answer goes out behind the events its command caused.
func (s *server) serve(ctx context.Context, sess Session, incoming <-chan command) error {
	answers := make(chan answer)
	var commands sync.WaitGroup
	events := sess.Events()
	for {
		select {
		case e, ok := <-events:
			if !ok { // the session ended by itself
				s.stop(errFrontEndGone)
				return s.shut(ctx, sess, nil, answers, &commands)
			}
			s.event(e)
		case c := <-incoming:
			s.start(sess, c, answers, &commands)
		case a := <-answers:
			s.drain(events)
			_ = s.send(message{Answer: &a})
		case <-ctx.Done():
			return s.shut(ctx, sess, events, answers, &commands)
		}
	}
}

// start runs a command on a goroutine that serve or shut takes the answer from.
func (s *server) start(sess Session, c command, answers chan<- answer, commands *sync.WaitGroup) {
	commands.Go(func() {
		a := answer{ID: c.ID}
		if c.Do == nil {
			a.Error = &remoteError{Text: fmt.Sprintf("request %d asks for nothing", c.ID)}
		} else {
			a.Error = toRemote(sess.Do(c.ctx, *c.Do))
		}
		s.mu.Lock()
		s.running[c.ID]()
		delete(s.running, c.ID)
		s.mu.Unlock()
		answers <- a
	})
}

// drain sends on the events that are there now.
func (s *server) drain(events <-chan Event) {
	for {
		select {
		case e, ok := <-events:
			if !ok {
				return
			}
			s.event(e)
		default:
			return
		}
	}
}

// shut closes the session after its commands have ended; ctx has cancelled them.
func (s *server) shut(ctx context.Context, sess Session, events <-chan Event, answers <-chan answer,
	commands *sync.WaitGroup,
) error {
	closed := make(chan error, 1)
	go func() {
		commands.Wait()
		closed <- sess.Close()
	}()
	for {
		select {
		case <-answers:
		case _, ok := <-events:
			if !ok {
				events = nil
			}
		case err := <-closed:
			if cause := context.Cause(ctx); err == nil && !errors.Is(cause, errFrontEndGone) {
				err = cause
			}
			return err
		}
	}
}

// event sends an event. One that JSON cannot hold (a NaN) is replaced by a line that says so: it must not end
// the session.
func (s *server) event(e Event) {
	if err := s.send(message{Event: &e}); err != nil {
		_ = s.send(message{Event: &Event{Log: &Log{
			Level: "error",
			Text:  "an event was lost on its way to the screen: " + err.Error(),
		}}})
	}
}

// send writes a message. Its error is that of a message which JSON cannot hold; a front end that is gone ends
// Serve.
func (s *server) send(m message) error {
	line, err := json.Marshal(m)
	if err != nil {
		return err
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	if _, err := s.out.Write(append(line, '\n')); err != nil {
		s.stop(errFrontEndGone)
	}
	return nil
}
