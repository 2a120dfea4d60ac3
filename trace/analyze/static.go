package analyze

import "slices"

// StaticMark is the first word of the title of a view that shows a run with static grids.
const StaticMark = "STATIC"

// Static reports whether every dispatch of the run used its largest grid. Older traces have no Static
// field, so the recorded command line is checked too.
func (x *Index) Static() bool {
	t := x.Trace
	return t.Static || slices.Contains(t.Command, "--static") || slices.Contains(t.Command, "--static=true")
}
