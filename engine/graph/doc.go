// Package graph builds graphs of operators with dynamic shapes and plans their dispatches. It does not need a
// GPU.
//
// An operator is defined by a pure function, its plan. From the live shapes of its arguments the plan
// computes the shapes of its outputs and the dispatches, each with its kernel, workgroup count and params.
// The builder calls the plan at the corners of the operator's range of shapes, to find which kernels to
// compile and how much memory to allocate. At run time the plan is called at the live shapes.
//
// A Builder records operators. Builder.Finish turns them into a Graph by a table of passes: check types, fuse
// operators, grant aliases, order dispatches into levels, and plan memory. A Graph never changes.
//
// A Live holds the changing state of a graph: the live shapes and the current plans. A resize is a
// transaction. It re-plans only the operators that depend on the changed shapes, and it takes effect as a
// whole or not at all.
//
// A Tracer converts resizes to trace records.
//
// docs/internals/engine.md explains the design. Package ops contains the operators, and package engine runs
// graphs.
package graph
