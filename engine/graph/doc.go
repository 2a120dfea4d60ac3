// Package graph builds graphs of operators with dynamic shapes and plans their dispatches, without a GPU.
//
// An operator is defined by a pure function, its plan. The plan gets the live shapes of the operator's
// arguments. It computes the shapes of the outputs and the dispatches, each with its kernel, workgroup count
// and params. The builder calls the plan at the operator's corners (its extreme shapes), to find which
// kernels to compile and how much memory to allocate. At run time the plan is called at the live shapes.
//
// A Builder records operators. Builder.Finish turns them into a Graph in several passes: it checks types,
// fuses operators, decides which outputs share the memory of an input, orders dispatches into levels, and
// plans memory. A Graph never changes.
//
// A Live holds the changing state of a graph: the live shapes and the current plans. A resize is a
// transaction. It re-plans only the operators that depend on the changed shapes, and it takes effect as a
// whole or not at all. A Tracer converts resizes to trace records.
//
// docs/internals/engine.md explains the design. Package ops contains the operators, and package engine runs
// graphs.
package graph
