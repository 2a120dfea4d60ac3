package run

import (
	"context"
	"fmt"
	"time"

	"gpuscope/engine"
	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/model/arch"
	"gpuscope/trace"
)

// Runner is a network on a device: tokens at a position go in, the next token comes out. Its buffers are used
// again from step to step.
type Runner struct {
	Dev gpu.Device
	Rec *engine.Recorder
	picker

	Edits map[string]*engine.Edit // other texts of kernels, by name

	// Input is that of the step that was sent last and is to be read next, next that of the one after it,
	// where that is prepared.
	Input, next *graph.StepInput
	tokens      [1]int    // of a step of one
	Probed      time.Time // when the canary ran last
	Slow        bool      // the GPU's clock was slower then than it is when warm
	SampleNS    int64     // ns that picking the last step's token took on the host; 0 where it gave none
}

func NewRunner(dev gpu.Device, exec *engine.Executor, n *arch.Network) *Runner {
	return &Runner{
		Dev: dev, Rec: engine.NewRecorder(exec), picker: newPicker(exec, n), Input: n.Input(0, nil),
		next: n.Input(0, nil),
	}
}

// Release frees the device and everything on it.
func (r *Runner) Release() {
	r.Exec.Release()
	if r.Exec.Loaded() {
		r.Dev.Release()
	}
}

// Timed says whether the device can time dispatches.
func (r *Runner) Timed() bool { return r.Exec.Loaded() && r.Dev.Info().Timestamps }

// Step runs tokens at a position. Where it gives a token what was picked has it; recent are the tokens that
// it is not to repeat.
func (r *Runner) Step(ctx context.Context, position int, tokens []int, gives bool, recent []int,
	timing engine.Timing,
) (Picked, error) {
	arch.SetInput(r.Input, position, tokens)
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

// ChooseSample picks the token of a position from what the last step read back.
func (r *Runner) ChooseSample(recent []int, position int) (Picked, error) {
	start := time.Now()
	out, err := r.Pick(recent, position)
	r.SampleNS = time.Since(start).Nanoseconds()
	return out, err
}

// Blame says where in the last step the first number arose that is none, by running it again.
func (r *Runner) Blame(ctx context.Context) string {
	first, found, err := r.Exec.FirstNonFinite(ctx)
	switch {
	case err != nil:
		return fmt.Sprintf(" (where it arose is not known: %v)", err)
	case !found:
		return " (run again the step has none like it: the device does not give the same twice)"
	}
	g := r.Net.Graph.Describe()
	return fmt.Sprintf("; the first in the step is %v, element %d of %s, which dispatch %d (%s) wrote",
		first.Number, first.Index, r.Net.Graph.Value(first.Value).Name, first.Dispatch,
		g.Ops[g.Dispatches[first.Dispatch].Op].Kind)
}

// Snapshot is what the last step left.
func (r *Runner) Snapshot() Snapshot {
	return Snapshot{Snapshot: r.Rec.Snapshot(), sampleNS: r.SampleNS}
}

// Snapshot is a step as it ended.
type Snapshot struct {
	*engine.Snapshot
	sampleNS   int64   // as in runner
	ClockProbe float64 // that ran after it; 0 where none did
	Slow       bool    // the last canary that ran found the GPU's clock slower than it is when warm
}

// Record is the step as a trace has it, and the plans that are new with it. Its wall time ends when its token
// is known: nobody can begin the next step before.
func (s Snapshot) Record() ([]trace.Plan, trace.Step) {
	plans, step := s.Snapshot.Record()
	if s.sampleNS > 0 {
		step.CPU.SampleNS = trace.Measured(s.sampleNS)
		total, _ := step.CPU.TotalNS.NS()
		step.CPU.TotalNS = trace.Measured(total + s.sampleNS)
	}
	step.Canary = s.ClockProbe
	step.Cold = step.Cold || s.Slow
	return plans, step
}
