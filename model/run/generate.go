package run

import (
	"context"

	"gpuscope/engine"
	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/model/arch"
)

// Generating several tokens does not require the GPU to wait for the host between two steps. The shapes and
// dispatches of the next step follow from its position alone, so the host prepares the next step while the
// GPU runs the current one. In stepped mode the next step is submitted once the token of the current step
// has been read. In pipelined mode it is submitted earlier: the GPU copies the token of the highest logit
// from the output of the current step to the input of the next. The host then notices the end of the text
// one step late. The surplus step is discarded. Its cache position is after the end of the text and is
// overwritten by the next step at that position.

// Generation describes a run of decode steps.
type Generation struct {
	Position, Token int // position and input token of the first step
	Steps           int // maximum number of steps
	Timing          engine.Timing
	Pipelined       bool
	Recorded        bool // take a snapshot of each step
	// Recent returns, for a position, the earlier tokens to which the repeat penalty applies. It is nil if
	// there is no penalty.
	Recent func(position int) []int
	// Gave is called with the result of each step. It reports whether to run another step.
	Gave func(out Picked, was Snapshot) (more bool, err error)
}

// Pipelines reports whether the pipelined mode is possible. It requires greedy sampling and no reported
// candidates, so that the next step needs only the token that is already on the device.
func (r *Runner) Pipelines() bool { return r.Greedy() && r.Net.Told == 0 }

// Generate runs the decode steps. The engine must be able to prepare the steps (see CanPrepare). A cancel
// takes effect only between two steps, and every step that has run is passed to Gave.
func (r *Runner) Generate(ctx context.Context, g *Generation) (err error) {
	defer func() { err = gpu.Join(err, r.Exec.Abandon()) }()
	arch.SetInput(r.Input, g.Position, []int{g.Token})
	if err := r.prepare(ctx, r.Input, g.Timing); err != nil {
		return err
	}
	if err := r.Exec.Send(r.Input); err != nil {
		return err
	}
	for left := g.Steps - 1; ; left-- {
		more := left > 0 && ctx.Err() == nil
		out, was, err := r.finish(ctx, g, more)
		if err != nil {
			return err
		}
		if again, err := g.Gave(out, was); err != nil || !again || left == 0 {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		g.Position, g.Token = g.Position+1, out.Token
		r.Input, r.next = r.next, r.Input
		r.tokens[0] = out.Token
		arch.SetTokens(r.Input, r.tokens[:])
		if g.Pipelined {
			continue
		}
		if err := r.Exec.Send(r.Input); err != nil {
			return err
		}
	}
}

// prepare prepares a step of one token.
func (r *Runner) prepare(ctx context.Context, in *graph.StepInput, timing engine.Timing) error {
	in.Read = r.read
	return r.Exec.Prepare(ctx, in, timing)
}

// finish waits for the submitted step and picks its token. If more is true, it prepares the next step before
// it waits. In pipelined mode it also submits the next step.
func (r *Runner) finish(ctx context.Context, g *Generation, more bool) (out Picked, was Snapshot, err error) {
	if g.Recorded {
		was.Snapshot = r.Rec.Shapes()
		defer func() {
			if err != nil {
				was.Drop()
			}
		}()
	}
	if more {
		arch.SetInput(r.next, g.Position+1, r.tokens[:])
		if r.Greedy() {
			r.next.Inputs[0].From = &r.Net.IDs
		}
		if err := r.prepare(context.WithoutCancel(ctx), r.next, g.Timing); err != nil {
			return out, was, err
		}
		ahead := r.Exec.Flush
		if g.Pipelined {
			ahead = func() error { return r.Exec.Send(r.next) }
		}
		if err := ahead(); err != nil {
			return out, was, err
		}
	}
	if err := r.Exec.Finish(); err != nil {
		return out, was, err
	}
	var recent []int
	if g.Recent != nil {
		recent = g.Recent(g.Position + 1)
	}
	if out, err = r.ChooseSample(recent, g.Position+1); err == nil && g.Recorded {
		was.Times()
		was.sampleNS = r.SampleNS
	}
	return out, was, err
}
