// Package ops holds the operators of decoder layers, one to a file, and the list of all kinds of operators
// (Kinds), under ExecuTorch's names. A file has everything about its operator: the row with its arguments,
// the constructor, the plan that maps live shapes to dispatches, and the float64 reference. Its kernels are
// shaders/<operator>*.wgsl. Operators on plain tensors are in ops/basic, weight formats in ops/weight, and
// what all operators are built from in ops/kind. The files fuse_*.go hold the fusion rules.
//
//	x := b.Input("x", graph.F32, []int{1, 256}, []int{512, 256})
//	y := ops.RMSNorm(b, "norm", x, weight, 1e-5)
//
// A constructor takes the builder, the operator's name in the graph, then the arguments in upstream's order.
// It returns the ids of the outputs, which are named after the operator. An error is recorded in the
// builder, and every call after the first error does nothing: constructors may be chained, and
// graph.Builder.Finish returns the error. New does the same for a kind by name, with its arguments by name:
//
//	y := ops.New(b, "tanh", "act", kind.Args{"x": x})
//
// Both check arguments against the types of the kind's row. Tensors are dense, row-major, and f32 unless a
// type says otherwise; a live tensor is a prefix of its memory. Every operator implements
// reference.Referencer, and reference.Interpreter runs a whole graph in float64.
package ops
