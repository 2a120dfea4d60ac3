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
