package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
)

// Serve opens a session and serves it to the front end that called Connect at the other end of the pipes.
// When the requests end, a write to the front end fails, or ctx is cancelled, Serve closes the session and
// returns. While the session opens, the front end receives progress events. If opening fails, the error is
// sent to the front end and also returned.
func Serve(ctx context.Context, requests io.Reader, messages io.Writer,
	open func(ctx context.Context, emit func(Event)) (Session, error),
) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s := &server{
		out: messages, stop: cancel, more: make(chan struct{}, 1), answers: make(chan answer),
		worked: make(chan struct{}),
	}

	// The reader starts first. If the front end disconnects while the model loads, the reader can then cancel
	// the loading.
	go s.read(ctx, requests)
	s.write([]byte(helloWords + protocol() + "\n"))
	sess, err := open(ctx, s.event)
	s.answer(answer{ID: 0, Error: toRemote(err)})
	if err != nil {
		return err
	}
	return s.serve(ctx, sess)
}

// errFrontEndGone means that the front end closed the connection. Serve then returns no error.
var errFrontEndGone = errors.New("the connection was closed by the front end")

// server has three goroutines, named after their methods. The goroutine `read` receives requests. It never
// waits for anything else, so it always notices a cancellation and the end of the requests. The goroutine
// `work` runs the commands one at a time. The goroutine `serve` sends all messages once the session is open.
type server struct {
	writing sync.Mutex
	out     io.Writer
	stop    context.CancelCauseFunc

	mu      sync.Mutex
	waiting []*call // in the order of the requests
	running *call
	more    chan struct{} // signals that waiting may have a call

	answers chan answer   // answers for serve to send
	worked  chan struct{} // closed after the last command has finished
}

// call is a command that the front end requested. Its ctx ends when the front end cancels the command.
type call struct {
	request
	ctx    context.Context
	cancel context.CancelFunc
}

// read receives requests until the input ends.
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

// cancel cancels a call. A call that has not started is answered at once.
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

// serve sends events and answers. It sends the events of a command before the answer.
func (s *server) serve(ctx context.Context, sess Session) error {
	go s.work(ctx, sess)
	events := sess.Events()
	for {
		select {
		case e, ok := <-events:
			if !ok { // the session ended although the front end did not close it
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

// drain sends the events that are already waiting in the channel.
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

// shut ends a session. It is called after ctx has been cancelled, which also cancels every command. It waits
// for the commands to end, and then closes the session. It sends no messages.
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

// event sends an event to the front end. If a record of the event cannot be encoded, for example because of a
// NaN, a log line is sent instead of this record. All other records are sent, and the session continues.
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
		Text:  fmt.Sprintf("the engine could not send %s to the screen: %v", what, err),
	}}})
}

// answer sends an answer. If the answer cannot be encoded, answer sends the error instead, so that the caller
// does not wait forever.
func (s *server) answer(a answer) {
	if err := s.send(message{Answer: &a}); err != nil {
		_ = s.send(message{Answer: &answer{ID: a.ID, Error: toRemote(err)}})
	}
}

// send encodes and sends a message. It returns an error only if the message cannot be encoded.
func (s *server) send(m message) error {
	b, err := wireBytes(&m)
	if err == nil {
		s.write(b)
	}
	return err
}

// write writes bytes to the front end. If this fails, Serve ends.
func (s *server) write(b []byte) {
	s.writing.Lock()
	defer s.writing.Unlock()
	if _, err := s.out.Write(b); err != nil {
		s.stop(errFrontEndGone)
	}
}
