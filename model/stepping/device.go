package stepping

import (
	"context"
	"fmt"
	"time"

	"gpuscope/engine"
	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/session"
	"gpuscope/trace"
)

// Device is a graph that is loaded onto a device, with the recorder of its steps.
type Device struct {
	Dev   gpu.Device // nil if the session has no device
	Exec  *engine.Executor
	Rec   *engine.Recorder
	Graph *graph.Graph
	Edits map[string]*engine.Edit // edited kernels, by name

	Probed   time.Time // time of the last clock probe
	Slow     bool      // at the last clock probe, the GPU clock ran slower than on a warm GPU
	SampleNS int64     // host time in ns for picking the last step's token; 0 if there is no token
}

// NewDevice returns the Device of an executor.
func NewDevice(dev gpu.Device, exec *engine.Executor) *Device {
	return &Device{Dev: dev, Exec: exec, Rec: engine.NewRecorder(exec), Graph: exec.Graph()}
}

// Release frees the graph and the device.
func (r *Device) Release() {
	r.Exec.Release()
	if r.Exec.Loaded() {
		r.Dev.Release()
	}
}

// Timed reports whether the device can time dispatches.
func (r *Device) Timed() bool { return r.Exec.Loaded() && r.Dev.Info().Timestamps }

// Blame finds the dispatch of the last step that wrote the first NaN or Inf, by running the step again. It
// returns the result as text that can be appended to an error message.
func (r *Device) Blame(ctx context.Context) string {
	first, found, err := r.Exec.FirstNonFinite(ctx)
	switch {
	case err != nil:
		return fmt.Sprintf(" (finding the dispatch that first wrote NaN or Inf failed: %v)", err)
	case !found:
		return " (the step wrote no NaN or Inf when it ran again: the device does not compute the same result twice)"
	}
	g := r.Graph.Describe()
	return fmt.Sprintf("; the first NaN or Inf in the step is %v in element %d of %s, written by dispatch %d (%s)",
		first.Number, first.Index, r.Graph.Value(first.Value).Name, first.Dispatch,
		g.Ops[g.Dispatches[first.Dispatch].Op].Kind)
}

// Snapshot returns the results and times of the last step.
func (r *Device) Snapshot() Snapshot {
	return Snapshot{Snapshot: r.Rec.Snapshot(), SampleNS: r.SampleNS}
}

// Snapshot describes a step that has ended.
type Snapshot struct {
	*engine.Snapshot
	SampleNS   int64   // see Device.SampleNS
	ClockProbe float64 // speed of the GPU clock right after the step; 0 if no probe ran
	Slow       bool    // at the last clock probe, the GPU clock ran slower than on a warm GPU
	// Experts has how each router divided the tokens among the experts; nil if the graph has no routers.
	Experts []trace.ExpertCounts
}

// Record returns the trace records of the step and of its new plans. The host time of the step includes the
// time for picking the token, because the next step cannot begin before the token is known.
func (s Snapshot) Record() ([]trace.Plan, trace.Step) {
	plans, step := s.Snapshot.Record()
	if s.SampleNS > 0 {
		step.CPU.SampleNS = trace.Measured(s.SampleNS)
		total, _ := step.CPU.TotalNS.NS()
		step.CPU.TotalNS = trace.Measured(total + s.SampleNS)
	}
	step.Experts, step.Canary = s.Experts, s.ClockProbe
	step.Cold = step.Cold || s.Slow
	return plans, step
}

// StepEvent returns the event with the records of a step and of its new plans. The function `describe` sets
// the remaining fields of the step.
func (s Snapshot) StepEvent(describe func(*trace.Step)) session.Event {
	plans, step := s.Record()
	describe(&step)
	records := make([]trace.Record, len(plans)+1)
	for i := range plans {
		records[i].Plan = &plans[i]
	}
	records[len(plans)].Step = &step
	return session.Event{Records: records}
}
