package engine

import (
	"fmt"
	"slices"

	"gpuscope/engine/graph"
	"gpuscope/internal/printable"
	"gpuscope/trace"
)

// Timing is a timing level: it selects what a step measures.
type Timing uint8

// The timing levels. Traces contain grids, params and resizes at every level.
const (
	TimingOff      Timing = iota // only wall time; the step needs no extra passes
	TimingStep                   // wall time, and GPU time between two timestamps around the step
	TimingBlock                  // also the GPU time of each block, in a pass of its own
	TimingDispatch               // also the GPU time of each dispatch, in a pass of its own
)

// Level returns the timing level as used in traces.
func (t Timing) Level() trace.Timing { return trace.TimingLevels[t] }

// String returns the name of the level on the command line and in traces.
func (t Timing) String() string { return string(t.Level()) }

// TimingNames returns the names of the levels as a list for a sentence.
func TimingNames() string {
	return printable.Choice(trace.TimingLevels)
}

// ParseTiming returns the level with the given name.
func ParseTiming(name string) (Timing, error) {
	if i := slices.Index(trace.TimingLevels, trace.Timing(name)); i >= 0 {
		return Timing(i), nil
	}
	return 0, fmt.Errorf("timing level %q is unknown; use %s", name, TimingNames())
}

// together reports whether two consecutive dispatches share a pair of timestamps.
func (t Timing) together(g *graph.Graph, a, b trace.DispatchID) bool {
	switch t {
	case TimingDispatch:
		return false
	case TimingBlock:
		p, q := &g.Ops[g.Dispatches[a].Op], &g.Ops[g.Dispatches[b].Op]
		return p == q || p.Layer >= 0 && p.Layer == q.Layer && p.Block == q.Block
	}
	return true
}
