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
	// Room is the capacity of the Messages pipe in bytes. If Room is 0, the smallest usual capacity is
	// assumed.
	Room int
	// Stderr, if not nil, is read to its end. Its lines become Log events. If the engine crashes, the error
	// quotes the last lines.
	Stderr io.Reader
	// Wait, if not nil, is called once, after Messages and Stderr have ended. It waits for the process and
	// returns the error with which the process ended, if any.
	Wait func() error
}

// lastWords is the maximum number of stderr lines that the error of a crashed engine quotes.
const lastWords = 8

// Connect returns the session that Serve provides at the other end of the pipes. It returns at once, while
// the engine still opens the model. Events report the progress. If the engine cannot open the model or
// crashes, Events is closed, and both commands and Close return the reason.
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
	closing chan struct{} // closed by Close; after that, the reader of Events may have stopped
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

// Do sends a command and waits for its answer. The engine also answers a cancelled command.
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
		// The engine has stopped reading. Its output must end before the reason is known.
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
			_ = c.send(request{ID: id, Cancel: true}) // unchecked: if the engine crashed, c.ended is closed
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

// gone returns the error for a command that arrives after the engine has ended.
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

// errReason wraps an error that is the known reason why the session ended, such as the engine's error about a
// model that cannot be opened. The user sees this error instead of the resulting pipe error.
type errReason struct{ err error }

func (e errReason) Error() string { return e.err.Error() }

// reason returns the reason why the engine ended, or nil if Close was called.
func (c *client) reason(err, waitErr error, last []string) error {
	if known, ok := errors.AsType[errReason](err); ok {
		return known.err
	}
	select {
	case <-c.closing:
		return nil
	default:
	}
	how := "the engine closed its standard output"
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

// readMessages processes messages until the engine's output ends, and then returns nil.
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

// These constants set the delay between two reads, so that one read returns many messages. Without a delay,
// the process would wake up for each of hundreds of messages per second, and waking up takes as long as
// reading. The delay is gatherSoon for a pipe of the capacity leastRoom, and proportionally longer for a
// larger pipe. If the engine ends during a delay, no data is lost, because the pipe keeps its content.
const (
	gatherSoon = 8 * time.Millisecond
	gatherMost = 100 * time.Millisecond // maximum delay when no request was sent recently
	leastRoom  = 64 << 10               // smallest usual capacity of a pipe in bytes
	answering  = time.Second            // time after a request during which the delay is gatherSoon
)

// gathering is a reader that delays reads so that each read returns more data. The next read starts when the
// duration `gather` has passed since the previous read. It starts at once after a new request, or after a
// read that returned a lot of data. The steps of the engine do not wait for this reader.
type gathering struct {
	r      io.Reader
	gather time.Duration
	asked  <-chan struct{} // signals that a request was sent
	next   time.Time       // earliest time of the next read
	soon   time.Time       // until this time, the delay is `gatherSoon` instead of `gather`
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

// takeMessages processes messages until receiving fails, and returns that error. The error is io.EOF after
// the last message.
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

// readStderr reads lines until Stderr ends and sends each line as a Log event. It returns the lines that an
// error message quotes if the engine has crashed.
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

// words collects the stderr lines that an error message quotes if the engine crashes: the last lines, or the
// first lines of a panic, because a long stack trace follows these.
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
