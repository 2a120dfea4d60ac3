package run

import (
	"context"

	"gpuscope/engine"
	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/model/arch"
)

// Tokens that are made one after another need not wait for the host between two steps: what the next step
// launches follows from its position alone. So it is prepared while the GPU is at the step before. Stepped,
// it is sent when the token of that one was read; pipelined, before: the highest logit's token goes from
// output to input on the device. That a text has ended is heard one step late then. The step too much is
// thrown away; what it wrote to the cache is after the text, and is written again by whoever comes there.

// Generation is tokens to be made.
type Generation struct {
	Position, Token int // of the first step
	Steps           int // at most
	Timing          engine.Timing
	Pipelined       bool
	Recorded        bool // each step has a snapshot
	// Recent are the tokens before a position that are not to be repeated; nil where there are none.
	Recent func(position int) []int
	// Gave is told what a step gave, and says whether there is to be another.
	Gave func(out Picked, was Snapshot) (more bool, err error)
}

// Pipelines says whether the device has the token of a step before the host, and no more of it is told.
func (r *Runner) Pipelines() bool { return r.Greedy() && r.Net.Told == 0 }

// Generate makes tokens. The engine must be able to prepare the steps. A cancel is heard between two steps,
// nowhere else: what has run was told.
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

// finish ends the step that was sent, and has the next one on its way before, where there is to be one.
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
