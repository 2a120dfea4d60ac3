package run

import (
	"context"

	"gpuscope/engine"
	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/model/network"
	"gpuscope/model/stepping"
)

// When several tokens are generated, the GPU should not have to wait while the host prepares the next step.
// The shapes and dispatches of the next step follow from its position alone, so the host prepares it while
// the GPU runs the current step. In stepped mode the next step is submitted as soon as the host has read the
// token of the current step. In pipelined mode the next step is submitted earlier: the GPU copies the token
// with the highest logit from the output of the current step to the input of the next step. The host then
// notices the end of the text one step too late, and discards the extra step. The extra step wrote to a cache
// position after the end of the text. A later step at this position will overwrite it.

// Generation describes a run of decode steps.
type Generation struct {
	Position, Token int // position and input token of the first step
	Steps           int // maximum number of steps
	Timing          engine.Timing
	Pipelined       bool
	Recorded        bool // pass a snapshot of each step to Gave
	// Recent returns the earlier tokens to which the repeat penalty applies when the token at `position` is
	// picked. Recent is nil if there is no penalty.
	Recent func(position int) []int
	// Gave is called with the result of each step. It returns whether to run another step.
	Gave func(out Picked, was stepping.Snapshot) (more bool, err error)

	at, next place // recurrent slots of the running step, and of the step prepared after it
}

// Pipelines reports whether steps can run in pipelined mode. This requires greedy sampling, and steps that
// report only the token and no candidates. The next step then needs only the token, which is already on the
// device.
func (r *Runner) Pipelines() bool { return r.Greedy() && r.Net.Told == 0 }

// Generate runs the decode steps. The engine must be able to prepare the steps (see
// engine.Executor.CanPrepare). If ctx is cancelled, Generate stops after the current step. Gave is called for
// every step that has run.
func (r *Runner) Generate(ctx context.Context, g *Generation) (err error) {
	defer func() { err = gpu.Join(err, r.Exec.Abandon()) }()
	network.SetInput(r.Input, g.Position, []int{g.Token})
	g.at = r.place(r.Input, g.Position, 1)
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
		r.Input, r.next, g.at = r.next, r.Input, g.next
		r.tokens[0] = out.Token
		network.SetTokens(r.Input, r.tokens[:])
		if g.Pipelined {
			continue
		}
		if err := r.Exec.Send(r.Input); err != nil {
			return err
		}
	}
}

// prepare prepares a step that reads one token and produces the next.
func (r *Runner) prepare(ctx context.Context, in *graph.StepInput, timing engine.Timing) error {
	in.Read = r.read
	return r.Exec.Prepare(ctx, in, timing)
}

// finish waits for the submitted step and picks its token. If `more` is true, it prepares the next step
// before it waits. In pipelined mode it also submits the next step.
func (r *Runner) finish(ctx context.Context, g *Generation, more bool) (out Picked,
	was stepping.Snapshot, err error,
) {
	if g.Recorded {
		was.Snapshot = r.Rec.Shapes()
		defer func() {
			if err != nil {
				was.Drop()
			}
		}()
	}
	if more {
		network.SetInput(r.next, g.Position+1, r.tokens[:])
		g.next = r.placeFrom(r.next, g.at, 1)
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
	r.ended(g.at)
	var recent []int
	if g.Recent != nil {
		recent = g.Recent(g.Position + 1)
	}
	if out, err = r.ChooseSample(recent, g.Position+1); err == nil && g.Recorded {
		was.Times()
		was.SampleNS = r.SampleNS
		was.Experts, err = r.Experts()
	}
	return out, was, err
}
