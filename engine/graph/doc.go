// Package graph plans dynamic-shape graphs of operators. It needs no device.
//
// An operator is one pure function, its plan: from the live shapes of its arguments to the shapes of its
// outputs and to dispatches, each with its kernel, workgroup count and params. The same function is called
// when the graph is built, at the corners of its range, which say what to compile and how much to allocate,
// and at run time, at live shapes.
//
//   - A Builder records operators. Finish makes a Graph of them by a table of passes: it checks types, fuses
//     operators, settles aliases, orders dispatches into levels and gives every value its memory. A Graph
//     never changes.
//   - Live is the changing half of a graph: the shapes and plans in force. A resize is a transaction. It
//     plans again only what new shapes reach, and takes effect as a whole or not at all.
//   - A Tracer turns resizes into records of a trace.
//
// How it works is in docs/internals/engine.md. Package ops has the operators, package engine runs graphs.
package graph
