package model

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"gpuscope/engine"
	"gpuscope/engine/gpu/fake"
	"gpuscope/session"
	"gpuscope/trace"
)

// piped is a session behind a pipe, with a front end that mirrors it.
type piped struct {
	session.Session
	mirror session.Mirror
	ended  sync.WaitGroup
	sync   chan func() // functions to run after all pending events are applied

	onEvent func() // called with every event
	failed  error  // error of the first event that the mirror refused
}

func newPiped(t *testing.T) *piped {
	requestsR, requestsW := io.Pipe()
	messagesR, messagesW := io.Pipe()
	options := Options{
		Path: write(t, tiny().Bytes()), Driver: &fake.Driver{All: []fake.Options{{NoLog: true}}},
		MaxChunk: 16, Timing: engine.TimingDispatch,
	}
	var served error
	p := &piped{onEvent: func() {}, sync: make(chan func())}
	p.ended.Go(func() {
		served = session.Serve(context.Background(), requestsR, messagesW,
			func(ctx context.Context, emit func(session.Event)) (session.Session, error) {
				return Open(ctx, options, emit)
			})
		messagesW.Close()
	})
	p.Session = session.Connect(session.Peer{Messages: messagesR, Requests: requestsW})
	p.ended.Go(p.drain)
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		p.ended.Wait()
		if served != nil || p.failed != nil {
			t.Error(served, p.failed)
		}
		if err := p.mirror.Trace.Check(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// drain applies events until the session ends.
func (p *piped) drain() {
	events := p.Events()
	take := func(e session.Event) {
		if err := p.mirror.Apply(e); err != nil && p.failed == nil {
			p.failed = err
		}
		p.onEvent()
	}
	for {
		select {
		case e, ok := <-events:
			if !ok {
				return
			}
			take(e)
		case f := <-p.sync:
			for len(events) > 0 {
				take(<-events)
			}
			f()
		}
	}
}

// between runs f after all pending events are applied.
func (p *piped) between(f func()) {
	done := make(chan struct{})
	p.sync <- func() { f(); close(done) }
	<-done
}

// anyCommand draws a random command, which the session may refuse.
func anyCommand(t *rapid.T) session.Command {
	c := session.Command{Kind: rapid.SampledFrom(allCommands()).Draw(t, "command").Kind}
	switch c.Kind {
	case session.Prompt:
		c.Tokens = ids(rapid.IntRange(0, 40).Draw(t, "tokens"))
		c.Chunks = rapid.SliceOfN(rapid.IntRange(0, 16), 0, 3).Draw(t, "chunks")
	case session.Run, session.Repeat:
		c.N = rapid.IntRange(-1, 8).Draw(t, "n")
	case session.Timing:
		c.Level = rapid.SampledFrom([]trace.Timing{trace.TimingOff, trace.TimingStep, trace.TimingDispatch, "often"}).Draw(t, "level")
	case session.Tokenize:
		c.Text = rapid.String().Draw(t, "text")
	}
	return c
}

// The test sends random commands, several at once, and cancels them at any event. The state that a front end
// rebuilds from the events must match the last reply, and its number of steps must match the replies.
func TestRemoteMirrorFollowsTheReplies(t *testing.T) {
	p := newPiped(t)
	steps := 0
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(rapid.Custom(anyCommand), 1, 4).Draw(t, "commands")
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		if after := rapid.IntRange(0, 12).Draw(t, "cancel after events"); after < 10 {
			p.between(func() {
				p.onEvent = func() {
					if after--; after == 0 {
						cancel()
					}
				}
			})
		}
		var all sync.WaitGroup
		var mu sync.Mutex
		for _, c := range list {
			all.Go(func() {
				r, err := p.Do(ctx, c)
				mu.Lock()
				defer mu.Unlock()
				steps += r.Steps
				if err != nil && !errors.Is(err, session.ErrUsage) && !errors.Is(err, context.Canceled) {
					t.Errorf("%+v: %v", c, err)
				}
			})
		}
		all.Wait()
		stand, err := p.Do(context.Background(), session.Command{Kind: session.Timing, Level: "dispatch"})
		if err != nil {
			t.Fatal(err)
		}
		p.between(func() {
			p.onEvent = func() {}
			st, text := p.mirror.State, p.mirror.Text
			if n := len(p.mirror.Trace.Steps) + p.mirror.Trace.DroppedSteps; p.failed != nil || n != steps {
				t.Errorf("%d steps came, the replies say %d (%v)", n, steps, p.failed)
			}
			if st.Step != stand.Step || st.Position != stand.Position || st.Running ||
				st.Given != len(text.Given) {
				t.Errorf("%+v with %d tokens given, the reply says %+v", st, len(text.Given), stand)
			}
		})
	})
}
