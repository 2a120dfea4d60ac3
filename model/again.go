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

// Any step of the text can run again, at the position where it ran first. It writes the same values to its
// cache positions as the first time, and it neither reads nor writes the positions after them. The cache
// therefore stays valid for the later steps.

// forget records that the device may no longer hold the values of any step.
func (s *live) forget() { s.ran, s.looked = nowhere, replayed{step: nowhere} }

// again runs step t of the text once more. Afterwards the device holds the values of this step.
func (s *live) again(ctx context.Context, t *run.Turn, timing engine.Timing) (run.Picked, error) {
	s.forget()
	out, err := s.play(ctx, t, timing)
	if err == nil {
		s.ran = t.Index
	}
	return out, err
}

// hold makes sure that the device holds the values of the current step. If it holds the values of another
// step, for example because the user stepped back or looked at a value of an older step, hold runs the
// current step again.
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

// turnAgain returns the run.Turn of a step that is to be measured again. It returns an error if the step ran
// with other kernels than those now in use.
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
		// If repeat was cancelled, there is no need to restore the values of the current step here: the next
		// command that needs them does it.
		if ctx.Err() == nil {
			err = gpu.Join(err, s.hold(ctx))
		}
		return err
	}, nil
}

// repeat runs step t n more times and records how long its dispatches took. The position of the text does not
// change.
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
			note = fmt.Sprintf("; the repeated step produced token %d, but the original step produced token %d",
				out.Token, t.Token)
		}
		times, ok := s.runner.Exec.DispatchNS()
		if !ok {
			return errors.New("repeat: the GPU times are unknown, because the device does not report how long one tick of its clock is")
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

// runUpto runs the current step again, but stops after dispatch id. The later dispatches do not run and
// overwrite nothing, so the memory of every value is as it was right after dispatch id.
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

// finish completes the current step after runUpto ran only its first dispatches.
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

// replay runs the dispatches of the last step again, from the first up to and including the dispatch to. The
// device must hold the values of this step.
func (s *live) replay(ctx context.Context, to trace.DispatchID) error {
	s.looked = replayed{step: nowhere}
	return s.runner.Exec.Replay(ctx, engine.Look{After: to, Value: s.runner.Net.Tokens})
}
