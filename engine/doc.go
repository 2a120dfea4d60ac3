// Package engine runs dynamic-shape graphs (package graph) on a GPU.
//
//   - An Executor is a graph on a device. A step resizes it, uploads what changed, encodes the dispatches in
//     force and reads the requested outputs. Check plans again and compares; Replay runs a step again and
//     looks into it.
//   - A Recorder turns each step into a record of a trace.
//   - Costs measures what each dispatch costs a step, TimeRoutes times operators alone on each route, and an
//     Edit runs another source of a kernel in its place.
//
// The tests that hold its promises are listed in docs/internals/engine.md.
package engine
