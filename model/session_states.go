package model

import (
	"context"
	"fmt"
	"time"

	"gpuscope/engine"
	"gpuscope/model/stepping"
	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/trace/table"
)

// A model with recurrent layers can run a step only if the recurrent state at the step's position is in
// memory. The states of some earlier positions are kept (see run.Runner.HasState). To restore the state of
// any other position, the text runs again from the nearest earlier position whose state is kept.

// restored describes the work that restored the recurrent state of a position.
type restored struct {
	from  int // position from which the text ran again
	steps int // steps that ran again; 0 if the state was in memory
	took  time.Duration
}

// restore makes sure that the recurrent state of a position of the text is in memory. Steps that run again
// have the same numbers of tokens as the first time, so that the state has the same bits.
func (s *live) restore(ctx context.Context, position int) (restored, error) {
	r := restored{from: position}
	if s.runner.HasState(position) {
		return r, nil
	}
	begin := time.Now()
	s.Forget()
	r.from = s.runner.NearestState(position)
	progress, ids := s.Progress(), s.text.All()
	for at := r.from; at < position; r.steps++ {
		if err := progress("restore the state", at-r.from, position-r.from); err != nil {
			return r, err
		}
		if err := ctx.Err(); err != nil {
			return r, err
		}
		n := s.stepAt(at, position)
		if _, err := s.runner.Step(ctx, at, ids[at:at+n], false, nil, engine.TimingOff); err != nil {
			return r, err
		}
		at += n
	}
	r.took = time.Since(begin)
	return r, nil
}

// stepAt returns how many tokens a step at a position of the text processes. If the text has a step at this
// position, the result is the number of tokens of that step. Otherwise an earlier text filled the position.
// The step then ends where the next step of this text begins or at the position `to`, whichever is first,
// and has at most maxChunk tokens.
func (s *live) stepAt(at, to int) int {
	for i := range s.text.Turns {
		turn := &s.text.Turns[i]
		if turn.Position == at {
			return len(turn.Tokens)
		}
		if turn.Position > at {
			to = min(to, turn.Position)
			break
		}
	}
	return min(s.m.maxChunk, to-at)
}

// stateFor calls restore. If steps had to run again, stateFor records an event with their number and time,
// and returns the event.
func (s *live) stateFor(ctx context.Context, position int) (*trace.Event, error) {
	r, err := s.restore(ctx, position)
	if err != nil || r.steps == 0 {
		return nil, err
	}
	return s.Event(max(s.text.Step(), 0), "replayed",
		"restored the recurrent state of position %d: ran %s again from position %d in %s; each kept state takes %s",
		position, table.Plural(r.steps, "step"), r.from, table.Millis(r.took.Nanoseconds(), true),
		table.Bytes(s.runner.Net.Recurrent.Bytes)), nil
}

// stepBack removes the current step from the text. In a model with recurrent layers, it also restores the
// recurrent state before this step.
func (s *live) stepBack() (stepping.Work, error) {
	was := *s.text.Last()
	s.text.Pop()
	s.Upto = nil
	s.runner.ForgetStates(was.Position)
	kept := ""
	if r := s.runner.Net.Recurrent; r != nil && s.runner.Exec.Loaded() && s.runner.HasState(was.Position) {
		kept = fmt.Sprintf("; the recurrent state of this position (%s) is still in memory",
			table.Bytes(r.Bytes))
	}
	e := s.Event(was.Index, "set_back", "stepped back to position %d%s", was.Position, kept)
	if s.runner.Net.Recurrent == nil {
		return nil, nil
	}
	return func(ctx context.Context, r *session.Reply) error {
		replayed, err := s.stateFor(ctx, was.Position)
		if r.Note = e; replayed != nil {
			r.Note = replayed
		}
		return err
	}, nil
}
