package model

import (
	"context"

	"gpuscope/engine"
	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
)

// Tokens that are made one after another need not wait for the host between two steps: what the next step
// launches follows from its position alone. So it is prepared while the GPU is at the step before. Stepped,
// it is sent when the token of that one was read; pipelined, before: the highest logit's token goes from
// output to input on the device. That a text has ended is heard one step late then. The step too much is
// thrown away; what it wrote to the cache is after the text, and is written again by whoever comes there.

// generation is tokens to be made.
type generation struct {
	position, token int // of the first step
	steps           int // at most
	timing          engine.Timing
	pipelined       bool
	recorded        bool // each step has a snapshot
	// recent are the tokens before a position that are not to be repeated; nil where there are none.
	recent func(position int) []int
	// gave is told what a step gave, and says whether there is to be another.
	gave func(out picked, was snapshot) (more bool, err error)
}

// pipelines says whether the device has the token of a step before the host, and no more of it is told.
func (r *runner) pipelines() bool { return r.greedy() && r.net.told == 0 }

// generate makes tokens. The engine must be able to prepare the steps. A cancel is heard between two steps,
// nowhere else: what has run was told.
func (r *runner) generate(ctx context.Context, g *generation) (err error) {
	defer func() { err = gpu.Join(err, r.exec.Abandon()) }()
	setInput(r.input, g.position, []int{g.token})
	if err := r.prepare(ctx, r.input, g.timing); err != nil {
		return err
	}
	if err := r.exec.Send(r.input); err != nil {
		return err
	}
	for left := g.steps - 1; ; left-- {
		more := left > 0 && ctx.Err() == nil
		out, was, err := r.finish(ctx, g, more)
		if err != nil {
			return err
		}
		if again, err := g.gave(out, was); err != nil || !again || left == 0 {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		g.position, g.token = g.position+1, out.token
		r.input, r.next = r.next, r.input
		r.tokens[0] = out.token
		setTokens(r.input, r.tokens[:])
		if g.pipelined {
			continue
		}
		if err := r.exec.Send(r.input); err != nil {
			return err
		}
	}
}

// prepare prepares a step of one token.
func (r *runner) prepare(ctx context.Context, in *graph.StepInput, timing engine.Timing) error {
	in.Read = r.read
	return r.exec.Prepare(ctx, in, timing)
}

// finish ends the step that was sent, and has the next one on its way before, where there is to be one.
func (r *runner) finish(ctx context.Context, g *generation, more bool) (out picked, was snapshot, err error) {
	if g.recorded {
		was.Snapshot = r.rec.Shapes()
		defer func() {
			if err != nil {
				was.Drop()
			}
		}()
	}
	if more {
		setInput(r.next, g.position+1, r.tokens[:])
		if r.greedy() {
			r.next.Inputs[0].From = &r.net.ids
		}
		if err := r.prepare(context.WithoutCancel(ctx), r.next, g.timing); err != nil {
			return out, was, err
		}
		ahead := r.exec.Flush
		if g.pipelined {
			ahead = func() error { return r.exec.Send(r.next) }
		}
		if err := ahead(); err != nil {
			return out, was, err
		}
	}
	if err := r.exec.Finish(); err != nil {
		return out, was, err
	}
	var recent []int
	if g.recent != nil {
		recent = g.recent(g.position + 1)
	}
	if out, err = r.choose(recent, g.position+1); err == nil && g.recorded {
		was.Times()
		was.sampleNS = r.sampleNS
	}
	return out, was, err
}
