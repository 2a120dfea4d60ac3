package engine

import (
	"time"

	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/trace"
)

// Unloaded returns an executor without a device. A step of this executor applies its shapes to the graph,
// as usual, but runs nothing. The launches of a graph can thus be inspected step by step and recorded,
// without a GPU and without reading weights. Besides Step, only Live, InForce, Device and a Recorder can be
// used, because everything else needs a device. The recorded steps contain dispatches, levels and passes.
// The only recorded time is that of the resize.
func Unloaded(g *graph.Graph, o graph.LiveOptions) (*Executor, error) {
	live, err := graph.NewLive(g, o)
	if err != nil {
		return nil, err
	}
	x := &Executor{g: g, live: live, start: time.Now()}
	x.last = &x.flights[0]
	for _, n := range g.AllocatedBytes() { // a loaded executor would have this memory
		x.allocated += n
	}
	return x, nil
}

// Loaded reports whether the executor has a device to run steps on.
func (x *Executor) Loaded() bool { return x.dev != nil }

// info describes the device. If there is no device, the description is a placeholder, with the limits for
// which the graph was planned.
func (x *Executor) info() gpu.AdapterInfo {
	if !x.Loaded() {
		return gpu.AdapterInfo{Name: trace.NoDevice, Limits: x.g.Limits}
	}
	return x.dev.Info()
}
