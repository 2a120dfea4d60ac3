package session

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// Peer is an engine at the other end of a pair of pipes, usually a child process. The engine runs Serve.
type Peer struct {
	Messages io.Reader      // standard output of the engine
	Requests io.WriteCloser // standard input of the engine
	// Room is the capacity of the Messages pipe in bytes; 0 means the smallest usual capacity.
	Room int
	// Stderr, if not nil, is read to its end. Its lines become Log events. If the engine crashes, the error
	// quotes the last lines.
	Stderr io.Reader
	// Wait, if not nil, is called once after Messages and Stderr have ended. It returns how the process
	// ended.
	Wait func() error
}

// lastWords is the maximum number of stderr lines that the error of a crashed engine quotes.
const lastWords = 8

// Connect returns the session that Serve provides at the other end of the pipes. It returns at once, and
// events report the progress. If opening fails or the engine crashes, Events is closed, and both commands
// and Close return the reason.
func Connect(p Peer) Session {
	c := &client{
		peer:     p,
		closing:  make(chan struct{}),
		ended:    make(chan struct{}),
		asked:    make(chan struct{}, 1),
		awaiting: map[int]chan *answer{},
	}
	c.stream = NewStream(c.closing, EventBuffer)
	go c.run()
	return c
}

type client struct {
	peer    Peer
	stream  *Stream
	closing chan struct{} // closed by Close; from then on nobody drains events
	ended   chan struct{} // closed after the engine has ended and err is set
	err     error
	shut    sync.Once

	writing sync.Mutex
	asked   chan struct{} // signals that a request was sent

	mu       sync.Mutex
	next     int
	awaiting map[int]chan *answer // indexed by request ID
}

// Events returns the channel of events.
func (c *client) Events() <-chan Event { return c.stream.Events() }

// Do sends a command and waits for its answer. A cancelled command is also answered.
func (c *client) Do(ctx context.Context, cmd Command) (Reply, error) {
	if err := ctx.Err(); err != nil {
		return Reply{}, err
	}
	done := make(chan *answer, 1)
	c.mu.Lock()
	c.next++
	id := c.next
	c.awaiting[id] = done
	c.mu.Unlock()
	if err := c.send(request{ID: id, Do: &cmd}); err != nil {
		// The engine stopped reading. The reason is known when the engine's output has ended.
		<-c.ended
		return Reply{}, c.gone()
	}
	cancelled := ctx.Done()
	for {
		select {
		case a := <-done:
			return a.Reply, a.Error.asError()
		case <-cancelled:
			cancelled = nil
			_ = c.send(request{ID: id, Cancel: true}) // an error is ignored: a crashed engine closes c.ended
		case <-c.ended:
			select {
			case a := <-done:
				return a.Reply, a.Error.asError()
			default:
				return Reply{}, c.gone()
			}
		}
	}
}

func (c *client) send(q request) error {
	b, err := wireBytes(&q)
	if err != nil {
		return err
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	select {
	case c.asked <- struct{}{}:
	default:
	}
	_, err = c.peer.Requests.Write(b)
	return err
}

// Close asks the engine to end and waits until it has ended.
func (c *client) Close() error {
	c.shut.Do(func() {
		close(c.closing)
		_ = c.peer.Requests.Close() // fails only if the engine has already ended
	})
	<-c.ended
	return c.err
}

// gone returns the error that commands return after the engine has ended.
func (c *client) gone() error {
	if c.err == nil {
		return ErrClosed
	}
	return fmt.Errorf("%w: %w", ErrClosed, c.err)
}

// run processes the engine's messages until the engine ends.
func (c *client) run() {
	said := make(chan []string, 1)
	go func() { said <- c.readStderr() }()
	err := c.readMessages()
	last := <-said
	var waitErr error
	if c.peer.Wait != nil {
		waitErr = c.peer.Wait()
	}
	c.err = c.reason(err, waitErr, last)
	close(c.ended)
	c.stream.End()
}

// errReason wraps an error that is known to have ended the session, such as the engine's own error from
// opening the model. The user sees this error instead of the pipe error that results from it.
type errReason struct{ err error }

func (e errReason) Error() string { return e.err.Error() }

// reason returns why the engine ended, or nil if Close asked for it.
func (c *client) reason(err, waitErr error, last []string) error {
	if known, ok := errors.AsType[errReason](err); ok {
		return known.err
	}
	select {
	case <-c.closing:
		return nil
	default:
	}
	how := "the engine closed its output"
	if waitErr != nil {
		how = waitErr.Error()
	} else if err != nil {
		how = err.Error()
	}
	if len(last) > 0 {
		return fmt.Errorf("%w: %s; its last output:\n  %s", ErrLost, how, strings.Join(last, "\n  "))
	}
	return fmt.Errorf("%w: %s", ErrLost, how)
}

// readMessages processes messages. It returns nil when they end.
func (c *client) readMessages() error {
	in := newWireReader(newGathering(c.peer.Messages, c.peer.Room, c.asked))
	err := in.greeted()
	if err == nil {
		err = c.takeMessages(in)
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		// The remaining output of the engine must be read. Otherwise the engine blocks on a full pipe and
		// never ends.
		_ = c.peer.Requests.Close()
		_, _ = io.Copy(io.Discard, c.peer.Messages)
	}
	return err
}

// A process that wakes up for each of hundreds of messages per second spends as much time waking up as
// reading. To avoid this, messages in quick succession are read together, after a delay of gatherSoon. A
// pipe with more capacity allows a proportionally longer delay. The delay loses no data: a pipe keeps its
// content if the writer ends.
const (
	gatherSoon = 8 * time.Millisecond
	gatherMost = 100 * time.Millisecond // maximum delay if no request was sent recently
	leastRoom  = 64 << 10               // smallest usual capacity of a pipe in bytes
	answering  = time.Second            // how long after a request the short delay gatherSoon applies
)

// gathering is a reader that delays reads to collect more data per read. A read starts at once after a pause,
// after a request, and after a read of much data. Otherwise it starts when the duration gather has passed
// since the previous read. The engine's steps do not wait for this reader.
type gathering struct {
	r      io.Reader
	gather time.Duration
	asked  <-chan struct{} // signals that a request was sent
	next   time.Time       // earliest time of the next read
	soon   time.Time       // the delay is gatherSoon until this time
}

func newGathering(r io.Reader, room int, asked <-chan struct{}) *gathering {
	gather := gatherSoon * time.Duration(max(1, room/leastRoom))
	return &gathering{r: r, gather: min(gather, gatherMost), asked: asked}
}

func (g *gathering) Read(b []byte) (int, error) {
	if wait := time.Until(g.next); wait > 0 {
		select {
		case <-g.asked:
			g.soon = time.Now().Add(answering)
		case <-time.After(wait):
		}
	}
	n, err := g.r.Read(b)
	switch g.next = time.Now(); {
	case n >= len(b)/4:
	case g.next.Before(g.soon):
		g.next = g.next.Add(gatherSoon)
	default:
		g.next = g.next.Add(g.gather)
	}
	return n, err
}

// takeMessages processes messages until an error, which is io.EOF after the last message.
func (c *client) takeMessages(in *wireReader) error {
	for {
		var m message
		if err := receive(in, &m); err != nil {
			return fmt.Errorf("read message: %w", err)
		}
		if m.Event != nil {
			c.stream.Send(*m.Event)
		}
		if m.Answer == nil {
			continue
		}
		if err := m.Answer.Error.asError(); m.Answer.ID == 0 && err != nil {
			return errReason{err}
		}
		c.mu.Lock()
		done := c.awaiting[m.Answer.ID]
		delete(c.awaiting, m.Answer.ID)
		c.mu.Unlock()
		if done != nil {
			done <- m.Answer
		}
	}
}

// readStderr sends each line as a Log event and returns the lines to quote if the engine has crashed.
func (c *client) readStderr() []string {
	if c.peer.Stderr == nil {
		return nil
	}
	var w words
	lines := bufio.NewReader(c.peer.Stderr)
	for {
		line, err := lines.ReadString('\n')
		if line = strings.TrimRight(line, "\r\n"); line != "" {
			w.hear(line)
			c.stream.Send(Event{Log: &Log{Level: "warn", Text: line}})
		}
		if err != nil {
			return w.lines
		}
	}
}

// words collects the stderr lines to quote for a crashed engine. It keeps the last lines. After a panic it
// keeps the first lines of the panic instead because long stack traces follow them.
type words struct {
	lines  []string
	panics bool
}

func (w *words) hear(line string) {
	if !w.panics && (strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ")) {
		w.panics, w.lines = true, nil
	}
	if len(w.lines) == lastWords {
		if w.panics {
			return
		}
		w.lines = append(w.lines[:0], w.lines[1:]...)
	}
	w.lines = append(w.lines, line)
}
