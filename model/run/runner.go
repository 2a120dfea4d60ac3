package run

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"gpuscope/engine"
	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/model/network"
	"gpuscope/model/stepping"
	"gpuscope/trace"
)

// Runner runs the steps of a network on a device. A step reads tokens at a position and produces the next
// token. The buffers are reused from step to step.
type Runner struct {
	*stepping.Device
	picker

	// Input is the input of the step that was submitted last or is about to be submitted. next is the input
	// of the following step, while the host prepares it.
	Input, next *graph.StepInput
	tokens      [1]int // token of a decode step
	slots       *slots // nil if the graph has no recurrent State
	counts      []byte // buffer for the counts of a router
}

// NewRunner returns the runner of a network that is loaded onto a device.
func NewRunner(dev gpu.Device, exec *engine.Executor, n *network.Network) *Runner {
	r := &Runner{
		Device: stepping.NewDevice(dev, exec), picker: newPicker(exec, n), Input: n.Input(0, nil),
		next: n.Input(0, nil),
	}
	if n.Recurrent != nil {
		r.slots = newSlots(n.Recurrent.Slots)
	}
	return r
}

// Step runs one step, which processes the given tokens at the given position. If `gives` is true, it picks
// and returns the next token. `recent` lists the tokens to which the repeat penalty applies. If the model
// has recurrent State, HasState(position) must be true. If it is false, the step still runs with the right
// shapes, but it starts from an arbitrary state, so its results are wrong.
func (r *Runner) Step(ctx context.Context, position int, tokens []int, gives bool, recent []int,
	timing engine.Timing,
) (Picked, error) {
	network.SetInput(r.Input, position, tokens)
	r.Input.Read, r.SampleNS = r.Net.ExpertCounts, 0
	if gives {
		r.Input.Read = r.read
	}
	at := r.place(r.Input, position, len(tokens))
	if err := r.Exec.Step(ctx, r.Input, timing); err != nil {
		return Picked{}, err
	}
	r.ended(at)
	if !gives || !r.Exec.Loaded() {
		return Picked{}, nil
	}
	return r.ChooseSample(recent, position+len(tokens))
}

// Experts returns how the routers divided the tokens of the last step among the experts. It returns nil if
// the model has no routers or the step has not run.
func (r *Runner) Experts() ([]trace.ExpertCounts, error) {
	if len(r.Net.ExpertCounts) == 0 || !r.Exec.Loaded() {
		return nil, nil
	}
	list := make([]trace.ExpertCounts, 0, len(r.Net.ExpertCounts))
	for _, v := range r.Net.ExpertCounts {
		counts := &r.Net.Graph.Values[v]
		n := int(counts.Bytes)
		r.counts = slices.Grow(r.counts[:0], n)[:n]
		if _, err := r.Exec.Output(v, r.counts); err != nil {
			return nil, fmt.Errorf("read back the number of tokens of each expert: %w", err)
		}
		of := trace.ExpertCounts{Op: trace.OpID(counts.Producer)}
		for expert := range n / 4 {
			if tokens := int(binary.LittleEndian.Uint32(r.counts[4*expert:])); tokens > 0 {
				of.Tokens = append(of.Tokens, [2]int{expert, tokens})
			}
		}
		list = append(list, of)
	}
	return list, nil
}

// ChooseSample picks the token for a position from the outputs that the last step read back, and stores the
// time that this took in SampleNS.
func (r *Runner) ChooseSample(recent []int, position int) (Picked, error) {
	start := time.Now()
	out, err := r.Pick(recent, position)
	r.SampleNS = time.Since(start).Nanoseconds()
	return out, err
}
