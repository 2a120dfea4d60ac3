package stepping

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gpuscope/engine"
	"gpuscope/engine/gpu"
	"gpuscope/session"
	"gpuscope/trace"
)

// Forget records that the device may no longer hold the values of any step.
func (s *Session) Forget() { s.Ran, s.looked = Nowhere, replayed{step: Nowhere} }

// ForgetLook records that the device may no longer hold the value that the last look command read.
func (s *Session) ForgetLook() { s.looked = replayed{step: Nowhere} }

// Again runs a step once more. Afterwards the device holds the values of this step. `differs` describes how
// the result differs from the first time: see Host.Play.
func (s *Session) Again(ctx context.Context, t Step, timing engine.Timing) (differs string, err error) {
	s.Forget()
	differs, err = s.host.Play(ctx, t, timing)
	if err == nil {
		s.Ran = t.Index
	}
	return differs, err
}

// Hold makes sure that the device holds the values of the current step. If the device holds the values of
// another step, for example after the user stepped back, Hold runs the current step again.
func (s *Session) Hold(ctx context.Context) error {
	t, ok := s.host.Current()
	if !ok || s.Ran == t.Index {
		return nil
	}
	_, err := s.Again(ctx, t, engine.TimingOff)
	return err
}

var errNoStep = session.Refusef("there is no step to run again; run a step first")

func (s *Session) canRepeat() error {
	if _, ok := s.host.Current(); !ok {
		return errNoStep
	}
	if !s.Timed() {
		return session.Refusef("cannot measure a step: this device has no timestamps")
	}
	return nil
}

// StepAgain returns the step with the given index, or the current step if `step` is nil, so that the caller
// can run it again. It returns an error if the step ran with other kernels than the kernels now in use.
func (s *Session) StepAgain(step *int) (Step, error) {
	t, err := s.stepOf(step)
	if err == nil {
		err = s.sameKernels(t)
	}
	return t, err
}

func (s *Session) beginRepeat(c session.Command) (Work, error) {
	if err := s.canRepeat(); err != nil {
		return nil, err
	}
	t, err := s.StepAgain(c.Step)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, r *session.Reply) error {
		s.Upto = nil
		err := s.repeat(ctx, t, max(c.N, 1), r)
		// After a cancellation, do not restore the values of the current step here: the next command that
		// needs them calls Hold.
		if ctx.Err() == nil {
			err = gpu.Join(err, s.Hold(ctx))
		}
		return err
	}, nil
}

// repeat runs the step `t` again, `n` times, and records how long its dispatches took. The position of the
// text does not change.
func (s *Session) repeat(ctx context.Context, t Step, n int, r *session.Reply) error {
	var samples [][]int64
	var err error
	note := ""
	for range n {
		var differs string
		if differs, err = s.Again(ctx, t, engine.TimingDispatch); err != nil {
			break
		}
		if differs != "" {
			note = fmt.Sprintf("; step %d %s", t.Index, differs)
		}
		times, ok := s.Exec.DispatchNS()
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
		s.Record(trace.Record{Samples: &trace.Samples{
			Step: t.Index, Samples: samples, Canary: s.ProbeClock(),
		}})
		times := fmt.Sprintf("%d times", r.Repeats)
		if r.Repeats == 1 {
			times = "once"
		}
		s.Event(t.Index, "repeat", "repeated %s%s", times, note)
	}
	return err
}

func (s *Session) beginUpto(c session.Command) (Work, error) {
	if _, ok := s.host.Current(); !ok {
		return nil, errNoStep
	}
	id := trace.DispatchID(c.N)
	if n := len(s.Watch.Graph.Dispatches); c.N >= n {
		return nil, session.Refusef("no dispatch %d; the graph has dispatches 0 to %d", c.N, n-1)
	}
	return func(ctx context.Context, _ *session.Reply) error { return s.RunUpto(ctx, id) }, nil
}

// RunUpto runs the current step again, but stops after the dispatch `id`. No later dispatch runs, so the
// memory has the same contents as right after this dispatch.
func (s *Session) RunUpto(ctx context.Context, id trace.DispatchID) error {
	if err := s.Hold(ctx); err != nil {
		return err
	}
	active := s.Exec.Live().Active()
	if _, runs := slices.BinarySearch(active, id); !runs {
		return session.Refusef("dispatch %d (%s) does not run in step %d", id, s.Watch.Name(id),
			s.stepIndex())
	}
	if err := s.replay(ctx, id); err != nil {
		return err
	}
	s.Upto = &id
	return nil
}

// Finish completes the current step after RunUpto ran only its first dispatches.
func (s *Session) Finish(ctx context.Context, _ *session.Reply) error {
	if err := s.Hold(ctx); err != nil {
		return err
	}
	active := s.Exec.Live().Active()
	err := s.replay(ctx, active[len(active)-1])
	if err == nil {
		s.Upto = nil
	}
	return err
}

// replay runs the dispatches of the last step again, from the first dispatch up to and including `to`. The
// device must hold the values of this step.
func (s *Session) replay(ctx context.Context, to trace.DispatchID) error {
	s.ForgetLook()
	return s.replayLook(ctx, engine.Look{After: to, Value: s.input})
}

// replayLook runs the dispatches of the last step again, from the first dispatch up to look.After.
func (s *Session) replayLook(ctx context.Context, look engine.Look) error {
	if err := s.host.Rewind(); err != nil {
		return err
	}
	return s.Exec.Replay(ctx, look)
}
