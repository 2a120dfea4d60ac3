package model

import (
	"context"
	"fmt"
	"time"

	"gpuscope/engine"
	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/trace"
)

// runner is a network on a device: tokens at a position go in, the next token comes out. Its buffers are used
// again from step to step.
type runner struct {
	dev gpu.Device
	rec *engine.Recorder
	picker

	edits map[string]*engine.Edit // other texts of kernels, by name

	// input is that of the step that was sent last and is to be read next, next that of the one after it,
	// where that is prepared.
	input, next *graph.StepInput
	tokens      [1]int    // of a step of one
	sang        time.Time // when the canary ran last
	slow        bool      // the GPU's clock was slower then than it is when warm
	sampleNS    int64     // ns that picking the last step's token took on the host; 0 where it gave none
}

func newRunner(dev gpu.Device, exec *engine.Executor, n *network) *runner {
	return &runner{
		dev: dev, rec: engine.NewRecorder(exec), picker: newPicker(exec, n), input: n.input(0, nil),
		next: n.input(0, nil),
	}
}

// release frees the device and everything on it.
func (r *runner) release() {
	r.exec.Release()
	if r.exec.Loaded() {
		r.dev.Release()
	}
}

// timed says whether the device can time dispatches.
func (r *runner) timed() bool { return r.exec.Loaded() && r.dev.Info().Timestamps }

// step runs tokens at a position. Where it gives a token what was picked has it; recent are the tokens that
// it is not to repeat.
func (r *runner) step(ctx context.Context, position int, tokens []int, gives bool, recent []int,
	timing engine.Timing,
) (picked, error) {
	setInput(r.input, position, tokens)
	r.input.Read, r.sampleNS = nil, 0
	if gives {
		r.input.Read = r.read
	}
	if err := r.exec.Step(ctx, r.input, timing); err != nil {
		return picked{}, err
	}
	if !gives || !r.exec.Loaded() {
		return picked{}, nil
	}
	return r.choose(recent, position+len(tokens))
}

// choose picks the token of a position from what the last step read back.
func (r *runner) choose(recent []int, position int) (picked, error) {
	start := time.Now()
	out, err := r.pick(recent, position)
	r.sampleNS = time.Since(start).Nanoseconds()
	return out, err
}

// blame says where in the last step the first number arose that is none, by running it again.
func (r *runner) blame(ctx context.Context) string {
	first, found, err := r.exec.FirstNonFinite(ctx)
	switch {
	case err != nil:
		return fmt.Sprintf(" (where it arose is not known: %v)", err)
	case !found:
		return " (run again the step has none like it: the device does not give the same twice)"
	}
	g := r.net.graph.Describe()
	return fmt.Sprintf("; the first in the step is %v, element %d of %s, which dispatch %d (%s) wrote",
		first.Number, first.Index, r.net.graph.Value(first.Value).Name, first.Dispatch,
		g.Ops[g.Dispatches[first.Dispatch].Op].Kind)
}

// snapshot is what the last step left.
func (r *runner) snapshot() snapshot {
	return snapshot{Snapshot: r.rec.Snapshot(), sampleNS: r.sampleNS}
}

// snapshot is a step as it ended.
type snapshot struct {
	*engine.Snapshot
	sampleNS int64   // as in runner
	canary   float64 // that ran after it; 0 where none did
	slow     bool    // the last canary that ran found the GPU's clock slower than it is when warm
}

// record is the step as a trace has it, and the plans that are new with it. Its wall time ends when its token
// is known: nobody can begin the next step before.
func (s snapshot) record() ([]trace.Plan, trace.Step) {
	plans, step := s.Record()
	if s.sampleNS > 0 {
		step.CPU.SampleNS = trace.Measured(s.sampleNS)
		total, _ := step.CPU.TotalNS.NS()
		step.CPU.TotalNS = trace.Measured(total + s.sampleNS)
	}
	step.Canary = s.canary
	step.Cold = step.Cold || s.slow
	return plans, step
}
