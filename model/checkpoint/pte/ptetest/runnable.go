package ptetest

// Adder returns a program that gpuscope can run. Its method "forward" adds two inputs of type f32 and shape
// [≤8].
func Adder() *Program {
	const f32 = 5
	g := &Graph{
		Values: []Table{
			GraphTensor(f32, -1, 0, 8), GraphTensor(f32, -1, 1, 8), GraphInt(1), GraphTensor(f32, -1, 2, 8),
		},
		Operators: []Table{Operator(0, "aten.add.Tensor", 0, 1, 2, 3)},
		Inputs:    []uint32{0, 1}, Outputs: []uint32{3},
	}
	var values []Table
	for range 3 {
		v := Tensor(6, 8)
		v[8] = int8(1) // dynamic, with a bound
		values = append(values, v)
	}
	return runnable(g, values, []int32{0, 1}, []int32{2})
}

// Recaller returns a program with a buffer that keeps the last input, f32 [1, 1, 1, 2]. gpuscope can run the
// program. The first execution of its method "forward" returns -0. Each later execution returns the negation
// of the input that the previous execution received.
func Recaller() *Program {
	const f32 = 5
	g := &Graph{
		Values: []Table{
			GraphTensor(f32, -1, 0, 1, 1, 1, 2), GraphTensor(f32, 0, -1, 1, 1, 1, 2), GraphInt(0),
			{0: One(1, Table{})},
			GraphTensor(f32, -1, 1, 1, 1, 1, 2),
		},
		Operators: []Table{
			Operator(0, "aten.neg.default", 1, 4), Operator(1, "update_cache.default", 0, 1, 2, 3),
		},
		Inputs: []uint32{0}, Outputs: []uint32{4},
		Constants: []Table{Inline(0, 8)}, Data: make([]byte, 8),
	}
	return runnable(g, []Table{Tensor(6, 1, 1, 1, 2), Tensor(6, 1, 1, 1, 2)}, []int32{0}, []int32{1})
}

// runnable returns a program whose method "forward" calls a delegate with the graph. `values` are the tensors
// of the method: the inputs of the delegate, then its outputs.
func runnable(g *Graph, values []Table, inputs, outputs []int32) *Program {
	all := make([]Table, len(values))
	for i, v := range values {
		all[i] = Value(v)
	}
	m := Method("forward", all, inputs, outputs)
	m[7] = []Table{Delegate("VulkanBackend", 0)}
	m[5] = []Table{Chain(Instruction(2, Table{0: int32(0), 1: append(inputs, outputs...)}))}
	return &Program{Segments: [][]byte{g.Bytes()}, Methods: []Table{m}}
}
