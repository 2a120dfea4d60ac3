package model

import (
	"context"
	"fmt"
	"strings"

	"gpuscope/model/run"
	"gpuscope/model/stepping"
	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/trace/table"
)

// commands returns the session commands that only a language model has, such as prompt. Package stepping
// defines the commands that any graph has.
func (s *live) commands() []stepping.Command {
	return []stepping.Command{
		{
			Kind: session.Prompt,
			Doc:  "Replace the text with a prompt, or append a user message to it, and run the prefill up to the first output token. Pause at a breakpoint.",
			Takes: []stepping.Field{
				stepping.Text, stepping.Tokens, stepping.AsTurn, stepping.Chunks, stepping.Count,
				stepping.Breaks,
			},
			Begin: s.beginPrompt, Planned: true,
		},
		{
			Kind: session.Next,
			Doc:  "Run the next step: decode one token, or prefill the next chunk of a cancelled prompt. If the current step ran only up to a dispatch, finish this step instead.",
			Begin: func(session.Command) (stepping.Work, error) {
				if s.Upto != nil {
					return s.Finish, nil
				}
				return s.step, s.canStep()
			},
			Tracked: true, Planned: true,
		},
		{
			Kind:  session.Run,
			Doc:   `Decode n tokens. If n is 0, decode until the end token or until the context is full. Pause at a breakpoint, or at the position given in the field "until".`,
			Takes: []stepping.Field{stepping.Count, stepping.Until, stepping.Breaks}, Begin: s.beginRun,
			Tracked: true, Planned: true,
		},
		{
			Kind: session.Plan, Doc: `Plan a step of n tokens in a session without a device. The step starts at the position given in the field "until". The current text is discarded.`,
			Takes: []stepping.Field{stepping.Count, stepping.Until}, Begin: s.beginPlan, Planned: true,
		},
		{
			Kind: session.Previous, Doc: "Step back: return to the position before the current step.",
			Begin: func(session.Command) (stepping.Work, error) {
				if s.text.Last() == nil {
					return nil, session.Refusef("cannot step back: the text has no steps")
				}
				return s.stepBack()
			},
			Tracked: true, Planned: true,
		},
		{
			Kind:  session.Edit,
			Doc:   "Keep the first n tokens of the text, append new tokens, and prefill the new tokens.",
			Takes: []stepping.Field{stepping.Text, stepping.Tokens, stepping.Count}, Begin: s.beginEdit,
			Planned: true,
		},
		{
			Kind: session.Chunk, Doc: "Prefill later prompts with n tokens per step. 0 means the maximum.",
			Takes: []stepping.Field{stepping.Count},
			Begin: func(c session.Command) (stepping.Work, error) {
				if err := s.m.checkChunk("chunk: "+table.Plural(c.N, "token"), c.N, 0); err != nil {
					return nil, err
				}
				s.chunk = c.N
				return nil, nil
			},
			Tracked: true, Planned: true,
		},
		{
			Kind:  session.TimeOp,
			Doc:   "Time an operator in isolation, n times for each combination of prompt length and route. If n is 0, 10 times.",
			Takes: []stepping.Field{stepping.Count, stepping.OfOp, stepping.Sizes}, Begin: s.beginTimeOp,
		},
		{
			Kind: session.Reset, Doc: "Clear the text. The steps recorded so far stay in the trace.",
			Begin: func(session.Command) (stepping.Work, error) {
				was := s.text.Step()
				s.text, s.Upto = run.Transcript{}, nil
				s.runner.ForgetStates(0)
				s.Event(max(was, 0), "reset", session.ResetText)
				return nil, nil
			},
			Planned: true,
		},
		{
			Kind:  session.Tokenize,
			Doc:   "Return the tokens that a text would have as a prompt. No step runs.",
			Takes: []stepping.Field{stepping.Text},
			Begin: func(c session.Command) (stepping.Work, error) {
				ids, err := s.m.encode(c, true)
				return func(_ context.Context, r *session.Reply) error {
					r.Tokens = s.m.told(ids)
					return nil
				}, err
			},
			Tracked: true, Planned: true,
		},
		{
			Kind:  session.Verify,
			Doc:   "Compare all dispatches of a step, or only the given parts, with float64 references. Each reference may use up to n GFLOP; 0 means 100.",
			Takes: []stepping.Field{stepping.Count, stepping.Parts, stepping.OfStep}, Begin: s.beginVerify,
			Tracked: true,
		},
		{
			Kind: session.Resume, Doc: "Restore the state that an engine had before it crashed, by running its steps again. These runs are not recorded.",
			Takes: []stepping.Field{stepping.Left}, Begin: s.beginResume,
		},
	}
}

func (s *live) beginPrompt(c session.Command) (stepping.Work, error) {
	if len(c.Chunks) == 0 && s.chunk > 0 {
		c.Chunks = []int{s.chunk}
	}
	read := s.m.prompt
	if c.Chat {
		read = func(c session.Command) (run.Transcript, error) { return s.m.said(&s.text, c) }
	}
	t, err := read(c)
	if err != nil {
		return nil, err
	}
	if err := s.Watch.Set(c.Breaks); err != nil {
		return nil, err
	}
	position := s.text.Position()
	s.begins(t, "prompt")
	prefill := s.prefill(c.Breaks)
	if !c.Chat || t.Kept >= position {
		return prefill, nil
	}
	rewritten := s.Event(s.runner.Rec.Next(), "rewritten",
		"the chat template rewrote earlier turns: the cache keeps only %d of %s; prefilling %s",
		t.Kept, table.Plural(position, "position"), table.Plural(len(t.IDs)-t.Kept, "token"))
	return func(ctx context.Context, r *session.Reply) error {
		r.Note = rewritten
		return prefill(ctx, r)
	}, nil
}

// begins replaces the text of the session by t and records an event of the given kind.
func (s *live) begins(t run.Transcript, kind string) {
	s.text, s.Upto = t, nil
	s.runner.ForgetStates(t.Kept)
	kept := ""
	if t.Kept > 0 {
		kept = fmt.Sprintf("; the first %d tokens are already in the cache", t.Kept)
	}
	var prompt strings.Builder
	for _, id := range t.IDs[min(t.Kept, len(t.IDs)):] {
		prompt.Write(s.m.tokens.Bytes(id))
	}
	s.Record(trace.Record{Event: &trace.Event{
		Step: s.runner.Rec.Next(), Kind: kind, Prompt: prompt.String(),
		Text: fmt.Sprintf("the text has %d tokens%s", len(t.IDs), kept),
	}})
}

func (s *live) beginEdit(c session.Command) (stepping.Work, error) {
	if s.text.Position() == 0 {
		return nil, session.Refusef("there is no text to edit; give a prompt first")
	}
	t, err := s.m.edited(&s.text, c, s.chunk)
	if err != nil {
		return nil, err
	}
	s.begins(t, "edit")
	return s.prefill(nil), nil
}

func (s *live) beginRun(c session.Command) (stepping.Work, error) {
	switch at := s.text.Position(); {
	case c.Until < 0, c.Until > s.m.context:
		return nil, session.Refusef("run to position %d: the position must be between 1 and %d", c.Until,
			s.m.context)
	case c.Until > 0 && c.Until <= at:
		return nil, session.Refusef("run to position %d: the text is already at position %d. "+
			"Give a higher position, or step back first", c.Until, at)
	}
	if err := s.Watch.Set(c.Breaks); err != nil {
		return nil, err
	}
	return func(ctx context.Context, r *session.Reply) error { return s.run(ctx, c, r) }, s.canStep()
}
