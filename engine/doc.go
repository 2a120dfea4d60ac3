// Package engine builds dynamic-shape graphs of operators and runs them on a GPU.
//
// An operator is one pure function, its plan: from the live shapes of its arguments to the shapes of its
// outputs and to dispatches, each with its kernel, workgroup count and params. The same function is called at
// build, for the corners of its range, which say what to compile and how much to allocate, and at run time,
// for live shapes. Everything else is the engine's:
//
//   - A Builder records operators, and Finish makes a Graph of them by a table of passes: it checks types,
//     fuses operators, settles aliases, orders dispatches into levels and gives every value its memory. A
//     Graph never changes and needs no device.
//   - Live is the changing half of a graph: the shapes and plans in force. A resize is a transaction. It
//     plans again what new shapes reach and nothing else, and is put in force whole or not at all.
//   - An Executor is a graph on a device. A step resizes, uploads what changed, encodes the dispatches in
//     force and reads the outputs that were asked for. Check plans afresh and compares; Replay runs a step
//     again and looks into it.
//   - A Recorder tells a trace what a step did.
//
// How it is kept right is in docs/engine.md, with the tests that hold each promise. Package ops has the
// operators, package engine/gpu the driver interface.
package engine
