package engine

import (
	"time"

	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/trace"
)

// Unloaded is an executor without a device. Its steps make the shapes that they are given the live ones, as
// those of any executor, and run nothing: what a graph would launch can be stepped through and recorded with
// no GPU and without reading weights. Beside Step only what is asked of the plan may be used: Live, InForce,
// Device and a Recorder, whose steps have dispatches, levels and passes, and of times how long the resize
// took.
func Unloaded(g *graph.Graph, o graph.LiveOptions) (*Executor, error) {
	live, err := graph.NewLive(g, o)
	if err != nil {
		return nil, err
	}
	x := &Executor{g: g, live: live, start: time.Now()}
	x.last = &x.flights[0]
	for _, n := range g.AllocatedBytes() { // which is what it would hold
		x.allocated += n
	}
	return x, nil
}

// Loaded says whether there is a device that steps run on.
func (x *Executor) Loaded() bool { return x.dev != nil }

// info is the device, or that there is none, with the limits that the graph was planned for.
func (x *Executor) info() gpu.AdapterInfo {
	if !x.Loaded() {
		return gpu.AdapterInfo{Name: trace.NoDevice, Limits: x.g.Limits}
	}
	return x.dev.Info()
}
