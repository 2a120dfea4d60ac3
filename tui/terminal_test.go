package tui

import (
	"context"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/vt"

	"gpuscope/session"
	"gpuscope/tui/tty"
)

// terminal is a terminal in memory that runs the real program.
type terminal struct {
	t      *testing.T
	screen *vt.SafeEmulator
	input  *keyboard
	done   chan error

	mu      sync.Mutex
	changed chan struct{}
	alt     bool // the alternate screen is active
	hidden  bool // the cursor is hidden
	raw     strings.Builder
	frame   func(screen string) // if not nil, is called with the screen after each write
}

// start runs the program on a session.
func start(t *testing.T, ctx context.Context, open func(context.Context) (session.Session, error),
	o Options,
) *terminal {
	const w, h = 80, 24
	x := &terminal{
		t: t, screen: vt.NewSafeEmulator(w, h), input: newKeyboard(), done: make(chan error, 1),
		changed: make(chan struct{}),
	}
	x.screen.SetCallbacks(vt.Callbacks{
		AltScreen:        func(on bool) { x.alt = on },
		CursorVisibility: func(visible bool) { x.hidden = !visible },
	})
	go func() { // the terminal's answers to queries are input, as in a real terminal
		_, _ = io.Copy(x.input, x.screen)
	}()
	o.Input, o.Output, o.Width, o.Height = x.input, x, w, h
	o.Color, o.Theme = "256", "dark"
	if o.Cache == "" {
		o.Cache = t.TempDir()
	}
	go func() { x.done <- Run(ctx, open, o) }()
	t.Cleanup(func() {
		x.input.Close()
		if c, ok := x.screen.InputPipe().(io.Closer); ok {
			c.Close()
		}
	})
	return x
}

// Write receives the output of the program.
func (x *terminal) Write(p []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.raw.Write(p)
	n, err := x.screen.Write(p)
	if x.frame != nil {
		x.frame(x.text())
	}
	close(x.changed)
	x.changed = make(chan struct{})
	return n, err
}

// text returns the screen without colour.
func (x *terminal) text() string { return ansi.Strip(x.screen.Render()) }

// press sends bytes as a keyboard does.
func (x *terminal) press(keys string) *terminal {
	x.input.Write([]byte(keys))
	return x
}

// sees waits until the screen contains all texts.
func (x *terminal) sees(texts ...string) *terminal {
	x.t.Helper()
	x.until(func(screen string) bool {
		for _, s := range texts {
			if !strings.Contains(screen, s) {
				return false
			}
		}
		return true
	}, strings.Join(texts, " and "))
	return x
}

// misses waits until the screen no longer contains a text.
func (x *terminal) misses(text string) *terminal {
	x.t.Helper()
	x.until(func(screen string) bool { return !strings.Contains(screen, text) }, "no "+text)
	return x
}

func (x *terminal) until(ok func(string) bool, what string) {
	x.t.Helper()
	limit := time.After(time.Minute)
	for {
		x.mu.Lock()
		changed := x.changed
		x.mu.Unlock()
		if ok(x.text()) {
			return
		}
		select {
		case <-changed:
		case err := <-x.done:
			x.done <- err
			x.t.Fatalf("the program ended (%v) before the screen had %s:\n%s", err, what, x.text())
		case <-limit:
			x.t.Fatalf("the screen never had %s:\n%s", what, x.text())
		}
	}
}

// ends waits for the end of the program and checks that it restored the terminal.
func (x *terminal) ends() error {
	x.t.Helper()
	select {
	case err := <-x.done:
		x.mu.Lock()
		defer x.mu.Unlock()
		if x.alt || x.hidden {
			x.t.Errorf("the terminal was not restored: program's screen %v, cursor hidden %v", x.alt,
				x.hidden)
		}
		if raw := x.raw.String(); strings.Count(raw, tty.BeginFrame) != strings.Count(raw, tty.EndFrame) {
			x.t.Error("a frame has no end")
		}
		return err
	case <-time.After(time.Minute):
		x.t.Fatalf("the program does not end:\n%s", x.text())
		return nil
	}
}

// keyboard is a reader that returns what was written to it and waits for more. Bubble Tea cannot interrupt a
// Read of it. While an editor has the terminal, a Read of the stopped loop goes on, and Bubble Tea discards
// its result. Afterwards a new loop reads.
type keyboard struct {
	mu     sync.Mutex
	cond   *sync.Cond
	buf    []byte
	closed bool
	loops  [][]byte // buffers of the loops that have read, the newest last
	lent   int      // number of times that an editor had the terminal
}

func newKeyboard() *keyboard {
	k := &keyboard{}
	k.cond = sync.NewCond(&k.mu)
	return k
}

func (k *keyboard) Write(p []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.buf = append(k.buf, p...)
	k.cond.Broadcast()
	return len(p), nil
}

func (k *keyboard) Read(p []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !slices.ContainsFunc(k.loops, func(q []byte) bool { return &q[0] == &p[0] }) {
		k.loops = append(k.loops, p)
		k.cond.Broadcast()
	}
	stopped := func() bool { return &k.loops[len(k.loops)-1][0] != &p[0] }
	for len(k.buf) == 0 && !k.closed && !stopped() {
		k.cond.Wait()
	}
	if stopped() || len(k.buf) == 0 {
		return 0, io.EOF
	}
	n := copy(p, k.buf)
	k.buf = k.buf[n:]
	return n, nil
}

// back waits until a new loop reads keys, after an editor had the terminal.
func (k *keyboard) back() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for k.lent++; len(k.loops) <= k.lent; {
		k.cond.Wait()
	}
}

func (k *keyboard) Close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = true
	k.cond.Broadcast()
	return nil
}
