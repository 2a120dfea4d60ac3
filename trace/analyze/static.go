package analyze

import "slices"

// StaticMark is the first word of the title of a view if the run has static grids.
const StaticMark = "STATIC"

// Static reports whether the run used static grids: every dispatch had its largest grid. Traces of older
// versions do not record this, so the recorded command line is searched for the flag too.
func (x *Index) Static() bool {
	t := x.Trace
	return t.Static || slices.Contains(t.Command, "--static") || slices.Contains(t.Command, "--static=true")
}
