// Package graph plans dynamic-shape graphs of operators. It needs no device.
//
// An operator is one pure function, its plan. From the live shapes of its arguments the plan computes the
// shapes of its outputs and the dispatches, each with its kernel, workgroup count and params. The builder
// calls it at the corners of the operator's range to find what to compile and how much to allocate; at run
// time it is called at live shapes.
//
// A Builder records operators. Finish turns them into a Graph by a table of passes: check types, fuse
// operators, settle aliases, order dispatches into levels, and plan memory. A Graph never changes.
//
// Live is the changing half of a graph: the shapes and plans in force. A resize is a transaction. It re-plans
// only the operators that new shapes reach, and takes effect as a whole or not at all.
//
// A Tracer turns resizes into trace records.
//
// docs/internals/engine.md explains how it works. Package ops has the operators, package engine runs graphs.
package graph
