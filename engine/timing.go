package engine

import (
	"fmt"
	"slices"

	"gpuscope/engine/graph"
	"gpuscope/internal/printable"
	"gpuscope/trace"
)

// Timing is how closely a step is timed.
type Timing uint8

// The timing levels. Grids, params and resizes are recorded at every level.
const (
	TimingOff      Timing = iota // wall time only; the step is one pass
	TimingStep                   // and two timestamps around the pass
	TimingBlock                  // a pass for each block, each between two timestamps
	TimingDispatch               // a pass for each dispatch, each between two timestamps
)

// Level is the timing level as traces have it.
func (t Timing) Level() trace.Timing { return trace.TimingLevels[t] }

// String is the level's name on the command line and in traces.
func (t Timing) String() string { return string(t.Level()) }

// TimingNames are the levels as a sentence lists them.
func TimingNames() string {
	return printable.Choice(trace.TimingLevels)
}

// ParseTiming is the level of that name.
func ParseTiming(name string) (Timing, error) {
	if i := slices.Index(trace.TimingLevels, trace.Timing(name)); i >= 0 {
		return Timing(i), nil
	}
	return 0, fmt.Errorf("timing level %q: want %s", name, TimingNames())
}

// together says whether two dispatches, one submitted right after the other, stand between the same
// timestamps.
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
