package analyze

import (
	"slices"
)

// StaticMark leads the title of whatever shows a run of which Static is true.
const StaticMark = "STATIC"

// Static reports that the run had every operator at its largest grid. Traces that were recorded before they
// said so have it in the command.
func (x *Index) Static() bool {
	t := x.Trace
	return t.Static || slices.Contains(t.Command, "--static") || slices.Contains(t.Command, "--static=true")
}

// Repeats is the number of samples that every dispatch has at least; 0 where one was not measured.
func (t *DispatchTree) Repeats() int {
	n := 0
	for i := range t.Launches {
		if k := t.Launches[i].Time.N; i == 0 || k < n {
			n = k
		}
	}
	return n
}

// Levels is how many levels the step had, and how many of the dispatches are in one: what other steps of a
// selection did has none.
func (t *DispatchTree) Levels() (levels, in int) {
	for i := range t.Launches {
		if level := t.Launches[i].Level; level >= 0 {
			levels, in = max(levels, level+1), in+1
		}
	}
	return levels, in
}
