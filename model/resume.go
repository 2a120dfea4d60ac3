package model

import (
	"context"
	"fmt"

	"gpuscope/engine"
	"gpuscope/model/run"
	"gpuscope/model/stepping"
	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/trace/table"
)

// beginResume restores the text of a crashed engine in this engine. All steps of the text run again, with the
// same numbers of tokens, so that the cache has the same contents as before the crash. The text keeps the
// tokens that the steps produced before the crash. An event at the end reports how many steps produced a
// different token this time.
func (s *live) beginResume(c session.Command) (stepping.Work, error) {
	l := c.Left
	switch {
	case l == nil:
		return nil, session.Refusef("resume: the field \"left\" is missing")
	case s.text.Last() != nil || s.runner.Rec.Next() > 0:
		return nil, session.Refusef("resume: this engine has already run steps")
	}
	if err := s.m.checkChunk("resume: chunks of "+table.Plural(l.Chunk, "token"), l.Chunk, 0); err != nil {
		return nil, err
	}
	timing := s.Timing
	if l.Timing != "" {
		var err error
		if timing, err = s.TimingOf(l.Timing); err != nil {
			return nil, err
		}
	}
	t, err := s.m.left(l)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, _ *session.Reply) error {
		s.Timing, s.chunk, s.resumed = timing, l.Chunk, true
		return s.resume(ctx, t, l)
	}, nil
}

// left returns the text of the crashed engine as a transcript in which no step has run yet. It checks every
// number and token id in l.
func (m *Model) left(l *session.Left) (run.Transcript, error) {
	last := -1
	if l.Last != nil {
		last = l.Last.Step
		p, n := l.Last.Position, l.Last.Tokens
		if last < 0 || p < 0 || n < 1 || n > m.maxChunk || p > m.context-n {
			return run.Transcript{}, session.Refusef(
				"resume: the last step is invalid: step %d has %s at position %d, but a step has at most %d tokens, and the context has %d positions",
				last, table.Plural(n, "token"), p, m.maxChunk, m.context)
		}
	}
	if len(l.Prompt) == 0 {
		if len(l.Turns)+len(l.Kept)+len(l.Talk) > 0 {
			return run.Transcript{}, session.Refusef(
				"resume: steps, kept positions or chat exchanges are given without a prompt")
		}
		return run.Transcript{}, nil
	}
	t, err := m.promptOf(l.Prompt, session.Command{})
	if err != nil {
		return t, err
	}
	for i, e := range l.Talk {
		if last := i == len(l.Talk)-1; e.From > len(t.IDs) || e.To > len(t.IDs) || last && e.From < 0 {
			return t, session.Refusef(
				"resume: an answer covers tokens %d to %d, but the prompt has %d tokens",
				e.From, e.To, len(t.IDs))
		}
	}
	t.Talk = l.Talk
	size := func(n int) error {
		return m.checkChunk("resume: a step of "+table.Plural(n, "token"), n, 1)
	}
	for _, n := range l.Kept {
		if err := size(n); err != nil {
			return t, err
		}
		t.Kept += n
	}
	position, step := t.Kept, -1
	t.Chunks = nil
	for _, turn := range l.Turns {
		if err := size(turn.Tokens); err != nil {
			return t, err
		}
		before := position
		position += turn.Tokens
		gives := position >= len(t.IDs)
		switch {
		case turn.Step <= step || turn.Step > last:
			return t, session.Refusef("resume: step %d follows step %d; step numbers must increase and must not exceed %d, the number of the last step",
				turn.Step, step, last)
		case before < len(t.IDs) && position > len(t.IDs), before >= len(t.IDs) && turn.Tokens != 1,
			position > m.context:
			return t, session.Refusef("resume: invalid step of %s at position %d; the prompt has %s, and the context has %d positions",
				table.Plural(turn.Tokens, "token"), before, table.Plural(len(t.IDs), "token"), m.context)
		case gives != (turn.Token != nil):
			return t, session.Refusef(
				"resume: the step at position %d: a step must have a generated token if and only if it reads the last token of the prompt or a later token",
				before)
		case gives && (*turn.Token < 0 || *turn.Token >= m.sizes.Vocab):
			return t, session.Refusef("resume: invalid token id %d; the vocabulary has ids 0 to %d",
				*turn.Token, m.sizes.Vocab-1)
		}
		step = turn.Step
		if before < len(t.IDs) {
			t.Chunks = append(t.Chunks, turn.Tokens)
		}
	}
	if t.Kept >= len(t.IDs) {
		return t, session.Refusef("resume: %d positions are kept, but the prompt has only %d tokens", t.Kept,
			len(t.IDs))
	}
	rest, err := m.chunks(len(t.IDs)-min(position, len(t.IDs)), nil)
	t.Chunks = append(t.Chunks, rest...)
	return t, err
}

// resume runs the steps of a text again. If it is cancelled, the text ends at the position that was
// reached. First, resume runs an extra step with the same shapes as the last step of the trace, because the
// recorder stores only how the shapes of the next step differ from those of the last recorded step. The
// tokens of the extra step do not matter: the cache positions that it writes are overwritten later, or are
// after the end of the text.
func (s *live) resume(ctx context.Context, t run.Transcript, l *session.Left) error {
	if last := l.Last; last != nil {
		tokens := make([]int, last.Tokens)
		if _, err := s.runner.Step(ctx, last.Position, tokens, false, nil, engine.TimingOff); err != nil {
			return err
		}
		for _, p := range s.runner.Rec.Continue(last.Step + 1) {
			s.Record(trace.Record{Plan: &p})
		}
	}
	s.runner.ForgetStates(0) // the recurrent states after this run do not belong to the text
	var end int
	for _, n := range l.Kept {
		end += n
	}
	for _, turn := range l.Turns {
		end += turn.Tokens
	}
	progress := func(done int) {
		to := session.Progress{Phase: "restore the text", Done: done, Total: end}
		s.Send(func() session.Event { return session.Event{Progress: &to} })
	}
	at := 0
	for _, n := range l.Kept {
		progress(at)
		if _, err := s.runner.Step(ctx, at, t.IDs[at:at+n], false, nil, engine.TimingOff); err != nil {
			return err
		}
		at += n
	}
	s.text = t
	others := 0
	for i := range l.Turns {
		progress(s.text.Position())
		_, n := s.text.Next()
		out, err := s.play(ctx, &n, engine.TimingOff)
		if err != nil {
			return err
		}
		n.Index, n.Edited = l.Turns[i].Step, s.Edited()
		if s.Ran = n.Index; n.Gives {
			n.Token = *l.Turns[i].Token
			if out.Token != n.Token {
				others++
			}
		}
		if text := s.text.Push(n); n.Gives {
			s.text.Before = append(s.text.Before, session.Token{ID: n.Token, Text: text})
			s.text.Ended = s.ends(n.Token)
		}
	}
	note := ""
	if others > 0 {
		note = fmt.Sprintf("; %d of these steps produced a different token this time; the original token was kept", others)
	}
	s.Event(max(s.text.Step(), 0), "engine_restarted",
		"the engine was restarted and is at position %d; steps of the text that ran again: %d%s",
		s.text.Position(), len(l.Turns), note)
	return nil
}
