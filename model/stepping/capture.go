package stepping

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gpuscope/engine"
	"gpuscope/engine/gpu"
	"gpuscope/internal/folder"
	"gpuscope/model/capture"
	"gpuscope/session"
	"gpuscope/trace"
)

// The command capture writes one dispatch of a step to a folder. The dispatch can then run without the model.
// The session writes the folder itself, so that the arrays do not have to pass through the pipe to the front
// end.

// beginCapture checks a capture command before any step is run.
func (s *Session) beginCapture(c session.Command) (Work, error) {
	to := c.Capture
	switch {
	case to == nil || to.Dir == "":
		return nil, session.Refusef("capture: no folder given")
	case to.Dispatch < 0 || int(to.Dispatch) >= len(s.Watch.Graph.Dispatches):
		return nil, session.Refusef("capture: no dispatch %d; the graph has dispatches 0 to %d", to.Dispatch,
			len(s.Watch.Graph.Dispatches)-1)
	case to.MaxBytes < 1:
		return nil, session.Refusef("capture: the size limit is %d bytes; it must be 1 or more", to.MaxBytes)
	}
	if err := folder.Check(to.Dir); err != nil {
		return nil, session.Refusef("capture to %s: %w", to.Dir, err)
	}
	t, err := s.StepAgain(c.Step)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, r *session.Reply) error {
		s.Upto = nil
		err := s.capture(ctx, t, to, r)
		if ctx.Err() == nil {
			err = gpu.Join(err, s.Hold(ctx))
		}
		return err
	}, nil
}

// capture runs a step again, and writes one of its dispatches to a folder.
func (s *Session) capture(ctx context.Context, t Step, to *session.CaptureTo, r *session.Reply) error {
	if _, err := s.Again(ctx, t, engine.TimingOff); err != nil {
		return err
	}
	if _, runs := slices.BinarySearch(s.Exec.Live().Active(), to.Dispatch); !runs {
		return session.Refusef("capture: dispatch %d (%s) does not run in step %d", to.Dispatch,
			s.Watch.Name(to.Dispatch), t.Index)
	}
	s.ForgetLook()
	if err := s.host.Rewind(); err != nil {
		return err
	}
	from, err := s.Exec.Capture(ctx, to.Dispatch, to.MaxBytes)
	if err != nil {
		if large, ok := errors.AsType[*engine.CaptureTooLargeError](err); ok {
			// Nothing has run, but the State on the device is now the State before the step.
			s.Forget()
			return session.Refusef("capture: %w; to write it, use --max-bytes %d", err, large.Bytes)
		}
		return err
	}
	origin := s.origin
	origin.Step = capture.Step{Index: t.Index, Phase: to.Phase, Position: t.Position, Tokens: t.Tokens}
	c := capture.New(s.Watch.Graph, from, origin)
	if err := c.Write(to.Dir); err != nil {
		return fmt.Errorf("write %s: %w", to.Dir, err)
	}
	r.Captured = &session.Captured{
		Dir: to.Dir, Dispatch: c.Dispatch.Name, Kernel: c.Kernel.Name, Bindings: len(c.Bindings),
		Bytes: c.Bytes(),
	}
	s.Record(trace.Record{Event: &trace.Event{
		Step: t.Index, Dispatch: &to.Dispatch, Kind: string(session.Capture),
		Text: fmt.Sprintf("dispatch %d captured in %s", to.Dispatch, to.Dir),
	}})
	return nil
}

// originOf describes the run of the session. Every capture of the session contains this description.
func originOf(header *trace.Trace) capture.Origin {
	return capture.Origin{
		Producer: header.Producer, Created: header.Created, Device: header.Device, Model: header.Model.Name,
	}
}
