package run

import (
	"context"
	"time"

	"gpuscope/engine"
	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/model/network"
	"gpuscope/model/stepping"
)

// Runner runs the steps of a network on a device. A step reads tokens at a position and produces the next
// token. The buffers are reused from step to step.
type Runner struct {
	*stepping.Device
	picker

	// Input is the input of the step that was submitted last, or is submitted next. next is the input of the
	// step after it, while this later step is prepared.
	Input, next *graph.StepInput
	tokens      [1]int // token of a decode step
}

// NewRunner returns the runner of a network that is loaded onto a device.
func NewRunner(dev gpu.Device, exec *engine.Executor, n *network.Network) *Runner {
	return &Runner{
		Device: stepping.NewDevice(dev, exec), picker: newPicker(exec, n), Input: n.Input(0, nil),
		next: n.Input(0, nil),
	}
}

// Step runs one step, which processes the given tokens at the given position. If gives is true, it picks and
// returns the next token. recent lists the tokens to which the repeat penalty applies.
func (r *Runner) Step(ctx context.Context, position int, tokens []int, gives bool, recent []int,
	timing engine.Timing,
) (Picked, error) {
	network.SetInput(r.Input, position, tokens)
	r.Input.Read, r.SampleNS = nil, 0
	if gives {
		r.Input.Read = r.read
	}
	if err := r.Exec.Step(ctx, r.Input, timing); err != nil {
		return Picked{}, err
	}
	if !gives || !r.Exec.Loaded() {
		return Picked{}, nil
	}
	return r.ChooseSample(recent, position+len(tokens))
}

// ChooseSample picks the token for a position from the outputs that the last step read back, and measures how
// long this takes.
func (r *Runner) ChooseSample(recent []int, position int) (Picked, error) {
	start := time.Now()
	out, err := r.Pick(recent, position)
	r.SampleNS = time.Since(start).Nanoseconds()
	return out, err
}
