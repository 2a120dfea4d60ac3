// Package ops has the operators of decoder layers, one in each file, and the list of all kinds of operators
// (Kinds). The operators have ExecuTorch's names. The file of an operator contains its kind.Kind (with the
// list of arguments), its constructor, its plan and its float64 reference. The plan maps the shapes of a step
// to dispatches. The kernels are in shaders/<operator>*.wgsl. The files fuse_*.go have the fusion rules.
//
// Operators on plain tensors are in ops/basic, and weight formats are in ops/weight. ops/kind has the parts
// that all operators are built from.
//
//	x := b.Input("x", graph.F32, []int{1, 256}, []int{512, 256})
//	y := ops.RMSNorm(b, "norm", x, weight, 1e-5)
//
// A constructor accepts the builder, the operator's name in the graph, then the arguments in ExecuTorch's
// order. It returns the ids of the outputs, which are named after the operator. An error is recorded in the
// builder, and every call after the first error does nothing. Callers can therefore call many constructors in
// a row, and check the error that graph.Builder.Finish returns. New adds an operator by the name of its kind,
// with arguments by name:
//
//	y := ops.New(b, "tanh", "act", kind.Args{"x": x})
//
// New and the constructors check arguments against the types in kind.Kind. Tensors are dense and row-major,
// and f32 unless a type says otherwise. Memory has room for the largest dims of a tensor. In a step with
// smaller dims, the tensor uses the beginning of its memory. Every operator implements reference.Referencer,
// and reference.Interpreter runs a whole graph in float64.
package ops
