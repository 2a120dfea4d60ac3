// Package tuitest has a session for tests and demonstrations of the terminal program: it plays a recorded
// trace back as if a model were running, and fails, waits or panics where a test says so.
package tuitest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"gpuscope/model/session"
	"gpuscope/trace"
)

// Script says how a Session behaves. The zero Script plays the trace back as fast as it is asked to.
type Script struct {
	// Progress is said before the trace's header.
	Progress []session.Progress
	// Before is called before every command and, in a run, before every step. What it returns is the
	// command's error; it may wait, and it may panic.
	Before func(context.Context, session.Command) error
}

// Session plays a trace back. A step is the recorded one at the position; its index counts what was played.
type Session struct {
	script   Script
	recorded *trace.Trace
	events   chan session.Event
	close    sync.Once

	mu     sync.Mutex // one command at a time
	plans  int        // sent
	played int        // steps sent
	state  session.State
	path   []trace.Step // steps that led to the position
}

// Play opens a session on a recorded trace. The first step of the trace is its prompt.
func Play(t *trace.Trace, s Script) *Session {
	p := &Session{script: s, recorded: t, events: make(chan session.Event, 1<<14)}
	context := t.Model.Dims["context"]
	p.state = session.State{Context: context, MaxChunk: context, Step: -1, Timing: "dispatch"}
	for i := range s.Progress {
		p.events <- session.Event{Progress: &s.Progress[i]}
	}
	head := *t
	head.Plans, head.Steps, head.Events, head.Observer = nil, nil, nil, nil
	p.events <- session.Event{Opened: &head}
	if t.Observer != nil {
		p.events <- session.Event{Observer: t.Observer}
	}
	p.tell()
	return p
}

// Events is the stream of events.
func (p *Session) Events() <-chan session.Event { return p.events }

// Close ends the stream.
func (p *Session) Close() error {
	p.close.Do(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		close(p.events)
	})
	return nil
}

// Say puts a line into the session's log.
func (p *Session) Say(level, text string) {
	p.events <- session.Event{Log: &session.Log{Level: level, Text: text}}
}

// Do runs a command.
func (p *Session) Do(ctx context.Context, c session.Command) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.tell()
	if c.Kind != session.Run {
		if err := p.before(ctx, c); err != nil {
			return err
		}
	}
	switch c.Kind {
	case session.Prompt:
		p.rewind(0)
		p.state.Prompt = nil
		first := p.recorded.Steps[0]
		for i, id := range first.Tokens {
			tok := session.Token{ID: id, Text: "·"}
			if i == 0 {
				tok.Text = c.Text
			}
			p.state.Prompt = append(p.state.Prompt, tok)
		}
		return p.step()
	case session.Next:
		return p.step()
	case session.Run:
		for i := 0; (c.N == 0 || i < c.N) && !p.state.Ended; i++ {
			if err := p.before(ctx, c); err != nil {
				return err
			}
			if err := p.step(); err != nil {
				return err
			}
			p.tell()
		}
	case session.Previous:
		if len(p.path) < 2 {
			return errors.New("there is no step before the first")
		}
		p.rewind(len(p.path) - 1)
	case session.Repeat:
		return p.repeat(c.N)
	case session.Reset:
		p.rewind(0)
		p.state.Prompt = nil
	case session.Timing:
		p.state.Timing = c.Level
	default:
		return fmt.Errorf("unknown command %q", c.Kind)
	}
	return nil
}

func (p *Session) before(ctx context.Context, c session.Command) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if p.script.Before == nil {
		return nil
	}
	return p.script.Before(ctx, c)
}

// tell sends where the session stands.
func (p *Session) tell() {
	s := p.state
	s.Prompt = append([]session.Token{}, s.Prompt...)
	s.Text = append([]session.Token{}, s.Text...)
	p.events <- session.Event{State: &s}
}

// rewind keeps so many steps of the path.
func (p *Session) rewind(n int) {
	p.path = p.path[:n]
	p.state.Text = nil
	p.state.Position, p.state.Step, p.state.Ended = 0, -1, false
	for _, s := range p.path {
		p.at(s)
	}
}

// at moves the state behind a step.
func (p *Session) at(s trace.Step) {
	p.state.Position, p.state.Step = s.Position+len(s.Tokens), s.Index
	if s.Token != nil {
		p.state.Text = append(p.state.Text, session.Token{ID: *s.Token, Text: s.Text})
	}
	last := p.recorded.Steps[len(p.recorded.Steps)-1]
	p.state.Ended = s.Position == last.Position
}

// step plays the recorded step at the position.
func (p *Session) step() error {
	for _, s := range p.recorded.Steps {
		if s.Position != p.state.Position {
			continue
		}
		most := p.plans
		for i := range s.Dispatches {
			most = max(most, int(s.Dispatches[i].Plan)+1)
		}
		for _, pass := range s.Resize.Passes {
			for _, h := range pass.Hooks {
				for _, c := range h.Plans {
					if c.To != nil {
						most = max(most, int(*c.To)+1)
					}
				}
			}
		}
		if most > p.plans {
			p.events <- session.Event{Plans: p.recorded.Plans[p.plans:most:most]}
			p.plans = most
		}
		s.Index = p.played
		p.played++
		p.events <- session.Event{Step: &s}
		p.path = append(p.path, s)
		p.at(s)
		return nil
	}
	return fmt.Errorf("position %d: the recording ends at %d", p.state.Position,
		p.recorded.Steps[len(p.recorded.Steps)-1].Position)
}

// repeat gives the current step n more samples: its own times with a little spread.
func (p *Session) repeat(n int) error {
	if len(p.path) == 0 {
		return errors.New("there is no step to repeat")
	}
	s := p.path[len(p.path)-1]
	r := session.Repeated{Step: s.Index, Samples: make([][]int64, len(s.Dispatches))}
	for i := range s.Dispatches {
		ns, _ := s.Dispatches[i].GPUNS.NS()
		for k := range n {
			r.Samples[i] = append(r.Samples[i], ns+32*int64((i+k)%5-2))
		}
	}
	p.events <- session.Event{Repeated: &r}
	return nil
}
