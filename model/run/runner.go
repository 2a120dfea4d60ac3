package run

import (
	"context"
	"fmt"
	"time"

	"gpuscope/engine"
	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/model/network"
	"gpuscope/trace"
)

// Runner runs the steps of a network on a device. A step reads tokens at a position and produces the next
// token. The buffers are reused from step to step.
type Runner struct {
	Dev gpu.Device
	Rec *engine.Recorder
	picker

	Edits map[string]*engine.Edit // edited kernels, by name

	// Input is the input of the step that was submitted last, or is submitted next. next is the input of the
	// step after it, while this later step is prepared.
	Input, next *graph.StepInput
	tokens      [1]int    // token of a decode step
	Probed      time.Time // time of the last clock probe
	Slow        bool      // at the last clock probe, the GPU clock ran slower than on a warm GPU
	SampleNS    int64     // host time in ns for picking the last step's token; 0 if it produced none
}

func NewRunner(dev gpu.Device, exec *engine.Executor, n *network.Network) *Runner {
	return &Runner{
		Dev: dev, Rec: engine.NewRecorder(exec), picker: newPicker(exec, n), Input: n.Input(0, nil),
		next: n.Input(0, nil),
	}
}

func (r *Runner) Release() {
	r.Exec.Release()
	if r.Exec.Loaded() {
		r.Dev.Release()
	}
}

// Timed reports whether the device can time dispatches.
func (r *Runner) Timed() bool { return r.Exec.Loaded() && r.Dev.Info().Timestamps }

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

// Blame finds the dispatch of the last step that wrote the first NaN or Inf, by running the step again. It
// returns the result as text that can be appended to an error message.
func (r *Runner) Blame(ctx context.Context) string {
	first, found, err := r.Exec.FirstNonFinite(ctx)
	switch {
	case err != nil:
		return fmt.Sprintf(" (finding the dispatch that first wrote NaN or Inf failed: %v)", err)
	case !found:
		return " (the step wrote no NaN or Inf when it ran again: the device does not compute the same result twice)"
	}
	g := r.Net.Graph.Describe()
	return fmt.Sprintf("; the first NaN or Inf in the step is %v in element %d of %s, written by dispatch %d (%s)",
		first.Number, first.Index, r.Net.Graph.Value(first.Value).Name, first.Dispatch,
		g.Ops[g.Dispatches[first.Dispatch].Op].Kind)
}

// Snapshot returns the results and times of the last step.
func (r *Runner) Snapshot() Snapshot {
	return Snapshot{Snapshot: r.Rec.Snapshot(), sampleNS: r.SampleNS}
}

// Snapshot describes a step that has ended.
type Snapshot struct {
	*engine.Snapshot
	sampleNS   int64   // see Runner.SampleNS
	ClockProbe float64 // speed of the GPU clock right after the step; 0 if no probe ran
	Slow       bool    // at the last clock probe, the GPU clock ran slower than on a warm GPU
}

// Record returns the step as the trace contains it, and the plans that did not occur in earlier steps. The
// host time of the step includes the time for picking the token, because the next step cannot begin before
// that.
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
