package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
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
	s := &server{
		out: messages, stop: cancel, more: make(chan struct{}, 1), answers: make(chan answer),
		worked: make(chan struct{}),
	}

	// The reader starts first: a front end that goes away while a model loads is not waited for.
	go s.read(ctx, requests)
	s.write([]byte(helloWords + protocol() + "\n"))
	sess, err := open(ctx, s.event)
	s.answer(answer{ID: 0, Error: toRemote(err)})
	if err != nil {
		return err
	}
	return s.serve(ctx, sess)
}

// errFrontEndGone ends Serve as it should end: the front end closed its side.
var errFrontEndGone = errors.New("the front end has closed the connection")

// server has three goroutines: read takes requests in and never waits for anything else, so that a cancel and
// the end of the requests are always heard; work runs the commands one after the other; serve alone writes.
type server struct {
	writing sync.Mutex
	out     io.Writer
	stop    context.CancelCauseFunc

	mu      sync.Mutex
	waiting []*call // in the order of their requests
	running *call
	more    chan struct{} // has an element where a call may be waiting

	answers chan answer   // to serve
	worked  chan struct{} // closed when no command runs any more
}

// call is a command that was asked for: ctx ends when the front end cancels it.
type call struct {
	request
	ctx    context.Context
	cancel context.CancelFunc
}

// read takes in requests until the input ends.
func (s *server) read(ctx context.Context, r io.Reader) {
	in := newWireReader(r)
	for {
		var q request
		if err := receive(in, &q); err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrClosedPipe) {
				err = fmt.Errorf("read request: %w", err)
			} else {
				err = errFrontEndGone
			}
			s.stop(err)
			return
		}
		if q.Cancel {
			s.cancel(ctx, q.ID)
			continue
		}
		c := &call{request: q}
		c.ctx, c.cancel = context.WithCancel(ctx)
		s.mu.Lock()
		s.waiting = append(s.waiting, c)
		s.mu.Unlock()
		select {
		case s.more <- struct{}{}:
		default:
		}
	}
}

// cancel ends a call. One that was not begun is answered at once.
func (s *server) cancel(ctx context.Context, id int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running != nil && s.running.ID == id {
		s.running.cancel()
		return
	}
	if i := slices.IndexFunc(s.waiting, func(c *call) bool { return c.ID == id }); i >= 0 {
		s.waiting[i].cancel()
		s.waiting = slices.Delete(s.waiting, i, i+1)
		go func() {
			select {
			case s.answers <- answer{ID: id, Error: toRemote(context.Canceled)}:
			case <-ctx.Done():
			}
		}()
	}
}

// work runs the commands in order until serving ends.
func (s *server) work(ctx context.Context, sess Session) {
	defer close(s.worked)
	for ctx.Err() == nil {
		s.mu.Lock()
		s.running = nil
		if len(s.waiting) > 0 {
			s.running, s.waiting = s.waiting[0], s.waiting[1:]
		}
		c := s.running
		s.mu.Unlock()
		if c == nil {
			select {
			case <-s.more:
			case <-ctx.Done():
			}
			continue
		}
		a := answer{ID: c.ID}
		if c.Do == nil {
			a.Error = &remoteError{Text: fmt.Sprintf("request %d has no command", c.ID)}
		} else {
			var err error
			a.Reply, err = sess.Do(c.ctx, *c.Do)
			a.Error = toRemote(err)
		}
		c.cancel()
		s.answers <- a
	}
}

// serve pumps events and answers out. An answer goes out after the events its command caused.
func (s *server) serve(ctx context.Context, sess Session) error {
	go s.work(ctx, sess)
	events := sess.Events()
	for {
		select {
		case e, ok := <-events:
			if !ok { // the session ended by itself
				s.stop(errFrontEndGone)
				return s.shut(ctx, sess, nil)
			}
			s.event(e)
		case a := <-s.answers:
			s.drain(events)
			s.answer(a)
		case <-ctx.Done():
			return s.shut(ctx, sess, events)
		}
	}
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

// shut closes the session after its commands have ended; ctx has cancelled them. Nothing is sent any more.
func (s *server) shut(ctx context.Context, sess Session, events <-chan Event) error {
	closed := make(chan error, 1)
	go func() {
		<-s.worked
		closed <- sess.Close()
	}()
	for {
		select {
		case <-s.answers:
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

// event sends an event. What of it cannot cross (a NaN) is replaced by a line that says so: it must not end
// the session, nor take with it what came in the same event.
func (s *server) event(e Event) {
	err := s.send(message{Event: &e})
	if err == nil {
		return
	}
	if len(e.Records) > 1 {
		for i := range e.Records {
			s.event(Event{Records: e.Records[i : i+1]})
		}
		return
	}
	what := "an event"
	if len(e.Records) == 1 && e.Records[0].Step != nil {
		what = fmt.Sprintf("step %d", e.Records[0].Step.Index)
	}
	_ = s.send(message{Event: &Event{Log: &Log{
		Level: "error",
		Text:  fmt.Sprintf("%s could not be sent to the screen: %v", what, err),
	}}})
}

// answer sends an answer. Whoever waits for it must not wait for ever because it cannot cross.
func (s *server) answer(a answer) {
	if err := s.send(message{Answer: &a}); err != nil {
		_ = s.send(message{Answer: &answer{ID: a.ID, Error: toRemote(err)}})
	}
}

// send sends a message. Its error is that of a message which cannot cross.
func (s *server) send(m message) error {
	b, err := wireBytes(&m)
	if err == nil {
		s.write(b)
	}
	return err
}

// write writes to the front end. One that is gone ends Serve.
func (s *server) write(b []byte) {
	s.writing.Lock()
	defer s.writing.Unlock()
	if _, err := s.out.Write(b); err != nil {
		s.stop(errFrontEndGone)
	}
}
