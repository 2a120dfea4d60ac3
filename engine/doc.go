// Package engine runs dynamic-shape graphs (package graph) on a GPU.
//
//   - An Executor holds a graph that is loaded on a device. Each step of an Executor resizes the graph,
//     uploads the inputs and the changed params, encodes the active dispatches and reads the requested
//     outputs back.
//   - Executor.Check plans every operator again and compares the result with the plans in use.
//   - Executor.Replay runs the last step again and reads intermediate values.
//   - A Recorder turns each step into a record of a trace.
//   - Executor.Costs measures how much time each dispatch adds to a step.
//   - Executor.TimeRoutes times isolated operators on each route.
//   - An Edit runs different source code in place of a kernel.
//
// The file docs/internals/engine.md lists the tests that check the guarantees of this package.
package engine
