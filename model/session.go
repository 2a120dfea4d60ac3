package model

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"gpuscope/engine"
	"gpuscope/model/run"
	"gpuscope/model/stepping"
	"gpuscope/session"
	"gpuscope/trace"
)

// live implements session.Session for a model on a device. One goroutine owns the device, the engine and the
// transcript. Do passes commands to this goroutine one by one.
type live struct {
	*stepping.Session
	m       *Model
	runner  *run.Runner
	text    run.Transcript
	chunk   int  // tokens per prefill step; 0 for the maximum
	resumed bool // the text was started by an engine that crashed
	// reference is the reference run of the text; nil until it is first needed.
	reference *referenceRun
}

// start starts the goroutine of the session.
func start(m *Model, r *run.Runner, header *trace.Trace) *live {
	s := &live{m: m, runner: r, Session: stepping.New(r.Device, m.options.Timing, m.options.Cache)}
	s.Start(host{s}, header, s.commands())
	return s
}

// host implements stepping.Host for a text.
type host struct{ *live }

func stepOf(t *run.Turn) stepping.Step {
	return stepping.Step{
		Index: t.Index, Position: t.Position, Tokens: len(t.Tokens), Shape: strconv.Itoa(len(t.Tokens)),
		Edited: t.Edited,
	}
}

func (s host) Current() (stepping.Step, bool) {
	t := s.text.Last()
	if t == nil {
		return stepping.Step{}, false
	}
	return stepOf(t), true
}

func (s host) Find(index int) (stepping.Step, bool) {
	t := s.text.Find(index)
	if t == nil {
		return stepping.Step{}, false
	}
	return stepOf(t), true
}

// Play implements stepping.Host. Any step of the text can run again, at the position where it ran first. The
// step writes the same values to its cache positions as the first time. It neither reads nor writes later
// positions, so the cache stays valid for later steps. If the recurrent state before the step is no longer in
// memory, earlier steps run again too.
func (s host) Play(ctx context.Context, of stepping.Step, timing engine.Timing) (differs string, err error) {
	t := s.text.Find(of.Index)
	out, err := s.play(ctx, t, timing)
	if err == nil && t.Gives && out.Token != t.Token {
		differs = fmt.Sprintf("produced token %d, but produces token %d when run again", t.Token, out.Token)
	}
	return differs, err
}

// Rewind implements stepping.Host. It does nothing, because a step never reads a cache position or a slot of
// recurrent State that the same step writes.
func (s host) Rewind() error { return nil }

func (s host) Position() int { return s.text.Position() }

func (s host) Close() error { return s.m.Close() }

// State implements stepping.Host. The result includes the text only if another text has begun since the last
// call.
func (s host) State() session.State {
	st := session.State{
		Context: s.m.context, MaxChunk: s.m.maxChunk, Position: s.text.Position(), Given: s.text.Given,
		Ended: s.text.Ended, Chunk: s.chunk, Unfinished: s.text.Voice.Held(),
	}
	if !s.text.Told {
		begins := session.Text{Prompt: s.text.Prompt, Given: s.text.Before, Talk: s.text.Talk}
		st.Begins, s.text.Told = &begins, true
		st.Resumed, s.resumed = s.resumed, false
	}
	return st
}

// canStep returns an error if no step can follow the current one.
func (s *live) canStep() error {
	switch {
	case len(s.text.IDs) == 0:
		return session.Refusef("there is no text yet; give a prompt first")
	case s.text.Position() >= s.m.context:
		return session.Refusef("the context is full: %d of %d positions are in use", s.text.Position(),
			s.m.context)
	case s.text.Fault != nil:
		return session.Refusef("the text has ended: %w. Step back or give another prompt", s.text.Fault)
	case s.text.Ended:
		return session.Refusef("the text has ended with the model's end token; step back or give another prompt")
	}
	return nil
}

// prefill returns the slow part of a command that sets a prompt. This part processes the prompt until the
// first token is produced, or until a step meets a breakpoint.
func (s *live) prefill(breaks []session.Break) stepping.Work {
	return func(ctx context.Context, r *session.Reply) error {
		return s.run(ctx, session.Command{Until: len(s.text.IDs), Breaks: breaks}, r)
	}
}

// run generates c.N tokens, or as many as possible if c.N is 0. It stops early at position c.Until or after a
// step that meets a breakpoint. If the prefill of the prompt was interrupted, run first processes the rest of
// the prompt.
func (s *live) run(ctx context.Context, c session.Command, r *session.Reply) error {
	if len(c.Breaks) > 0 {
		if err := s.Hold(ctx); err != nil {
			return err
		}
		s.Watch.From(s.Session)
	}
	for n := 0; s.canStep() == nil && (c.Until == 0 || s.text.Position() < c.Until); {
		if s.text.Position() >= len(s.text.IDs) {
			if c.N > 0 && n == c.N {
				return nil
			}
			if s.generates(&c) {
				return s.generate(ctx, &c, n, r)
			}
			n++
		}
		begin := time.Now()
		if err := s.step(ctx, r); err != nil {
			return err
		}
		if len(c.Breaks) == 0 {
			continue
		}
		if paused, err := s.Pauses(ctx, stepOf(s.text.Last()), begin, r); paused || err != nil {
			return err
		}
	}
	return nil
}

// step runs the next step. If the step fails, the position does not change. If the highest logit is not
// finite, the step is recorded but produces no token. The text cannot continue, so step returns an error.
func (s *live) step(ctx context.Context, r *session.Reply) error {
	phase, n := s.text.Next()
	n.Gives = n.Gives && s.runner.Exec.Loaded()
	s.Forget()
	s.Upto = nil
	s.runner.ForgetStates(n.Position)
	out, err := s.play(ctx, &n, s.Timing)
	if err != nil {
		return err
	}
	was := s.runner.Snapshot()
	if was.Experts, err = s.runner.Experts(); err != nil {
		return err
	}
	return s.ended(ctx, phase, n, out, was, r)
}

// ended appends a step that has just run to the text, and sends its record to the front end.
func (s *live) ended(ctx context.Context, phase trace.Phase, n run.Turn, out run.Picked,
	was stepping.Snapshot, r *session.Reply,
) error {
	was.ClockProbe, was.Slow = s.runner.HeedClockProbe(s.Timing)
	n.Index, n.Token, n.Edited = was.Index(), out.Token, s.Edited()
	s.Ran = n.Index
	if n.Gives && !out.Finite() {
		n.Gives = false
		s.text.Ended = true
		s.text.Fault = fmt.Errorf("step %d at position %d produces no token: the highest logit is %v%s",
			n.Index, n.Position, out.Highest, s.runner.Blame(ctx))
	}
	text := s.text.Push(n)
	if n.Gives {
		s.text.Ended = s.ends(n.Token)
	}
	s.Send(func() session.Event { return s.m.stepEvent(was, phase, n, out.Top, text) })
	r.Steps++
	if s.text.Fault != nil {
		s.Event(n.Index, "logits", "%v", s.text.Fault)
	}
	return s.text.Fault
}

func (s *live) play(ctx context.Context, n *run.Turn, timing engine.Timing) (run.Picked, error) {
	if _, err := s.stateFor(ctx, n.Position); err != nil {
		return run.Picked{}, err
	}
	var recent []int
	if by := &s.m.options.Sampling; n.Gives && by.Penalises() {
		recent = s.text.Recent(n.Position+len(n.Tokens), by.RepeatLastN)
	}
	return s.runner.Step(ctx, n.Position, n.Tokens, n.Gives, recent, timing)
}

// generates reports whether run.Runner.Generate can run the next steps, which requires that the host reads
// only tokens between two steps. The current step must be a decode step that has run to its last dispatch,
// and the executor must not have run another step since.
func (s *live) generates(c *session.Command) bool {
	last := s.text.Last()
	return len(c.Breaks) == 0 && last != nil && last.Position >= len(s.text.IDs) && s.Ran == last.Index &&
		s.Upto == nil && s.runner.Exec.CanPrepare(s.Timing)
}

// generate handles a command `run` that has generated n tokens so far: it generates all further tokens.
func (s *live) generate(ctx context.Context, c *session.Command, n int, r *session.Reply) error {
	_, next := s.text.Next()
	g := run.Generation{
		Position: next.Position, Token: next.Tokens[0], Steps: s.m.context - next.Position, Timing: s.Timing,
		Pipelined: s.m.options.Pipelined && s.runner.Pipelines(), Recorded: true,
	}
	if c.N > 0 {
		g.Steps = min(g.Steps, c.N-n)
	}
	if c.Until > 0 {
		g.Steps = min(g.Steps, c.Until-next.Position)
	}
	if by := &s.m.options.Sampling; by.Penalises() {
		g.Recent = func(position int) []int { return s.text.Recent(position, by.RepeatLastN) }
	}
	g.Gave = func(out run.Picked, was stepping.Snapshot) (more bool, err error) {
		phase, n := s.text.Next()
		// If a logit is not finite, run the step again, because the next step may have overwritten its values
		// on the device. The method `ended` calls Blame, which examines these values.
		if !out.Finite() {
			if _, err := s.play(ctx, &n, engine.TimingOff); err != nil {
				return false, err
			}
		}
		err = s.ended(ctx, phase, n, out, was, r)
		return err == nil && s.canStep() == nil, err
	}
	s.Forget()
	s.runner.ForgetStates(next.Position)
	_, err := s.stateFor(ctx, next.Position)
	if err == nil {
		err = s.runner.Generate(ctx, &g)
	}
	if !s.runner.Exec.Stands() {
		s.Forget()
	}
	return err
}

// ends reports whether the text ends after `token` was generated: the context is full, or the token is an end
// token.
func (s *live) ends(token int) bool {
	return s.text.Position() >= s.m.context || !s.m.options.IgnoreEOS && s.m.tokens.IsEnd(token)
}

// stepEvent returns the event that contains the record of a step and the records of its plans that are new in
// the trace.
func (m *Model) stepEvent(s stepping.Snapshot, phase trace.Phase, n run.Turn, top []trace.Candidate,
	text string,
) session.Event {
	return s.StepEvent(func(step *trace.Step) {
		step.Phase, step.Position, step.Tokens, step.Text = phase, n.Position, n.Tokens, text
		if n.Gives {
			step.Token, step.Sampling = &n.Token, m.sampling
		}
		for i := range top {
			top[i].Text = strings.ToValidUTF8(string(m.tokens.Bytes(top[i].ID)), "\uFFFD")
		}
		step.Top = top
	})
}
