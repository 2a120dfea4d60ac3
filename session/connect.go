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

// Peer is an engine at the other end of pipes, where Serve runs: usually a child process.
type Peer struct {
	Messages io.Reader      // what it sends: its standard output
	Requests io.WriteCloser // what it reads: its standard input
	// Room is how many bytes Messages holds while nobody reads; 0: as few as any pipe does.
	Room int
	// Stderr, where it is not nil, is read to its end; its lines become Log events, the last ones part of the
	// error that says the engine is gone.
	Stderr io.Reader
	// Wait, where it is not nil, is called once after Messages and Stderr have ended, and says how the
	// process ended.
	Wait func() error
}

// lastWords is how many lines of its stderr a lost engine is quoted with at most.
const lastWords = 8

// Connect is the session that Serve serves at the other end. It returns at once; progress comes as events.
// Where opening fails or the engine is lost, Events is closed, commands return the reason, and so does Close.
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
	closing chan struct{} // closed by Close: nobody drains events any more
	ended   chan struct{} // closed when the engine is gone; then err is set
	err     error
	shut    sync.Once

	writing sync.Mutex
	asked   chan struct{} // has an element where a request was sent

	mu       sync.Mutex
	next     int
	awaiting map[int]chan *answer // by request id
}

// Events is the stream of events.
func (c *client) Events() <-chan Event { return c.stream.Events() }

// Do sends a command and waits for its answer, which comes also after a cancel.
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
		// The engine stopped reading; why is known when its output has ended.
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
			_ = c.send(request{ID: id, Cancel: true}) // an engine that is gone shows at c.ended
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

// Close tells the engine to end and waits until it has.
func (c *client) Close() error {
	c.shut.Do(func() {
		close(c.closing)
		_ = c.peer.Requests.Close() // fails only where the engine is gone already
	})
	<-c.ended
	return c.err
}

// gone is the error of commands after the end.
func (c *client) gone() error {
	if c.err == nil {
		return ErrClosed
	}
	return fmt.Errorf("%w: %w", ErrClosed, c.err)
}

// run takes in what the engine sends, until it ends.
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

// errReason wraps what ended the session where that is known, the engine's own word on why it could not open
// the model above all: that, and nothing about pipes, is the reason.
type errReason struct{ err error }

func (e errReason) Error() string { return e.err.Error() }

// reason is why the engine ended: nil where it was told to.
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

// readMessages returns nil when the messages end.
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
		// What is left must be read, or the engine blocks on a full pipe and never ends.
		_ = c.peer.Requests.Close()
		_, _ = io.Copy(io.Discard, c.peer.Messages)
	}
	return err
}

// To be woken for each of hundreds of messages in a second takes a process as much as to read them. What
// comes one after another is let come together: for the time of gatherSoon, and where the pipe has room
// for more, for so much longer. What is in it is not lost with its writer.
const (
	gatherSoon = 8 * time.Millisecond
	gatherMost = 100 * time.Millisecond // of a frame that nobody asked for
	leastRoom  = 64 << 10               // bytes that a pipe has room for
	answering  = time.Second            // after a question it is for gatherSoon: it may be the answer
)

// gathering reads at once what comes after a pause, after a question, and what is long, and else what comes
// in the time of gather. An engine's steps do not wait for it.
type gathering struct {
	r      io.Reader
	gather time.Duration
	asked  <-chan struct{} // has an element after a question
	next   time.Time       // it does not read before
	soon   time.Time       // and until then after gatherSoon
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

// takeMessages takes in messages up to an error, which is io.EOF after the last.
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

// readStderr makes a Log event of each line and returns what to quote a lost engine with.
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

// words are what a lost engine is quoted with: its last lines, but of a panic the first ones, for the stacks
// that follow them are long.
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
