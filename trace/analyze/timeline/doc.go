// Package timeline places a whole recorded run on one time axis: what the host (CPU) and the GPU did in each
// step, as slices of time. The exports for trace viewers and the views of the whole run draw these slices.
//
// All times are in ns from the start of the axis, which is the earliest instant of the trace. Steps are
// placed one by one, so that a long trace needs no long list of slices.
package timeline
