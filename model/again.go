package model

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gpuscope/engine"
	"gpuscope/engine/gpu"
	"gpuscope/model/run"
	"gpuscope/session"
	"gpuscope/trace"
)

// The steps of the text can be run again. A step writes the same values to its own cache positions as
// before, and it reads no later positions. The cache positions of later steps therefore keep their values.

// forget marks the values on the device as unknown.
func (s *live) forget() { s.ran, s.looked = nowhere, replayed{step: nowhere} }

// again runs a step of the text again. Afterwards the device holds the values of this step.
func (s *live) again(ctx context.Context, t *run.Turn, timing engine.Timing) (run.Picked, error) {
	s.forget()
	out, err := s.play(ctx, t, timing)
	if err == nil {
		s.ran = t.Index
	}
	return out, err
}

// hold runs the current step again if the device holds the values of another step, for example after a step
// back or after a look at an older step.
func (s *live) hold(ctx context.Context) error {
	t := s.text.Last()
	if t == nil || s.ran == t.Index {
		return nil
	}
	_, err := s.again(ctx, t, engine.TimingOff)
	return err
}

func (s *live) canRepeat() error {
	if s.text.Last() == nil {
		return session.Refusef("there is no step to run again; give a prompt first")
	}
	if !s.runner.Timed() {
		return session.Refusef("cannot measure a step: this device has no timestamps")
	}
	return nil
}

// turnAgain returns the turn of a step that is to be measured again. It refuses a step that ran with other
// kernels than those now in use.
func (s *live) turnAgain(step *int) (*run.Turn, error) {
	t, err := s.turnOf(step)
	if err == nil {
		err = s.sameKernels(t)
	}
	return t, err
}

func (s *live) beginRepeat(c session.Command) (work, error) {
	if err := s.canRepeat(); err != nil {
		return nil, err
	}
	t, err := s.turnAgain(c.Step)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, r *session.Reply) error {
		s.upto = nil
		err := s.repeat(ctx, t, max(c.N, 1), r)
		// After a cancellation, the next command that needs the current step restores it.
		if ctx.Err() == nil {
			err = gpu.Join(err, s.hold(ctx))
		}
		return err
	}, nil
}

// repeat runs a step again n times, without moving the position, and records the durations of its
// dispatches.
func (s *live) repeat(ctx context.Context, t *run.Turn, n int, r *session.Reply) error {
	var samples [][]int64
	var err error
	note := ""
	for range n {
		var out run.Picked
		if out, err = s.again(ctx, t, engine.TimingDispatch); err != nil {
			break
		}
		if t.Gives && out.Token != t.Token {
			note = fmt.Sprintf("; the repeat produced token %d, the original step token %d",
				out.Token, t.Token)
		}
		times, ok := s.runner.Exec.DispatchNS()
		if !ok {
			return errors.New("repeat: no GPU times, because the period of the GPU's clock is unknown")
		}
		if samples == nil {
			samples = make([][]int64, len(times))
		}
		for i, ns := range times {
			samples[i] = append(samples[i], ns)
		}
		r.Repeats++
	}
	if samples != nil {
		s.record(trace.Record{Samples: &trace.Samples{
			Step: t.Index, Samples: samples, Canary: s.runner.ProbeClock(),
		}})
		times := fmt.Sprintf("%d times", r.Repeats)
		if r.Repeats == 1 {
			times = "once"
		}
		s.event(t.Index, "repeat", "repeated %s%s", times, note)
	}
	return err
}

func (s *live) beginUpto(c session.Command) (work, error) {
	last := s.text.Last()
	if last == nil {
		return nil, session.Refusef("run up to a dispatch: no step has run yet; give a prompt first")
	}
	id := trace.DispatchID(c.N)
	if n := len(s.watch.graph.Dispatches); c.N >= n {
		return nil, session.Refusef("no dispatch %d; the graph has dispatches 0 to %d", c.N, n-1)
	}
	return func(ctx context.Context, _ *session.Reply) error { return s.runUpto(ctx, id) }, nil
}

// runUpto runs the dispatches of the current step again, from the first up to and including id. The later
// dispatches do not run, so the values that they overwrite still hold what they held right after dispatch id.
func (s *live) runUpto(ctx context.Context, id trace.DispatchID) error {
	if err := s.hold(ctx); err != nil {
		return err
	}
	active := s.runner.Exec.Live().Active()
	if _, runs := slices.BinarySearch(active, id); !runs {
		return session.Refusef("dispatch %d (%s) does not run in step %d", id, s.watch.name(id),
			s.text.Step())
	}
	if err := s.replay(ctx, id); err != nil {
		return err
	}
	s.upto = &id
	return nil
}

// finish completes a step that was run only up to a dispatch.
func (s *live) finish(ctx context.Context, _ *session.Reply) error {
	if err := s.hold(ctx); err != nil {
		return err
	}
	active := s.runner.Exec.Live().Active()
	err := s.replay(ctx, active[len(active)-1])
	if err == nil {
		s.upto = nil
	}
	return err
}

// replay repeats the step whose values the device holds, up to and including a dispatch.
func (s *live) replay(ctx context.Context, to trace.DispatchID) error {
	s.looked = replayed{step: nowhere}
	return s.runner.Exec.Replay(ctx, engine.Look{After: to, Value: s.runner.Net.Tokens})
}
