package ptetest

// Example returns a program that covers most features of the format. It has three methods. One has a Vulkan
// delegate, one has portable operators and a delegate of another backend, and one returns a constant. If
// `weightInProgram` is true, the program contains the first weight of the Vulkan graph as named data with the
// key "weight". Otherwise a data file must contain that key.
func Example(weightInProgram bool) *Program {
	const f32, int64Type = 6, 4
	graph := ExampleGraph()
	p := &Program{Segments: [][]byte{graph.Bytes(), []byte("for another backend")}}
	if weightInProgram {
		p.Named = []Named{{Key: "weight", Data: make([]byte, 8*4*4+12)}} // 12 bytes of padding
	}
	at := len(p.Named)
	bounded := Tensor(f32, 16, 4)
	bounded[8] = int8(1)
	out := Tensor(f32, 16, 8)
	out[8], out[6] = int8(1), Table{0: uint32(1), 1: uint32(64), 2: uint32(1)}
	forward := Method("forward", []Table{Value(bounded), Value(Tensor(int64Type, 1)), Value(out)},
		[]int32{0, 1}, []int32{2})
	forward[7] = []Table{Delegate("VulkanBackend", at, Option("require_dynamic_shapes", 1), Option("empty"))}
	forward[5] = []Table{Chain(Instruction(2, Table{0: int32(0), 1: []int32{0, 1, 2}}))}
	forward[1] = Table{0: "in", 1: "out"}

	other := Method("other", []Table{
		Value(Tensor(f32, 2)), Value(true), Value(2.5), Value("text"), Value(nil), Value(int64(7)),
		{0: Union{7, Table{0: []int64{5, 5}}}},
		{0: Union{8, Table{0: []float64{0.5}}}},
		{0: Union{9, Table{0: []bool{true, false}}}},
		{0: Union{10, Table{0: []int32{0}}}},
		{0: Union{11, Table{0: []int32{0, -1}}}},
	}, []int32{0}, []int32{0})
	other[6] = []Table{{0: "aten::add", 1: "out"}, {0: "aten::copy_"}}
	other[7] = []Table{Delegate("XnnpackBackend", at+1)}
	other[5] = []Table{Chain(
		Instruction(4, Table{0: int32(1), 1: int32(4)}),
		Instruction(1, Table{0: int32(0), 1: []int32{0, 0, 5, 0}}),
		Instruction(3, Table{0: int32(0), 1: int32(0)}), Instruction(2, Table{0: int32(0), 1: []int32{0}}),
		Instruction(5, Table{0: int32(0)}))}
	p.Methods = []Table{
		forward, other,
		Method("get_max_seq_len", []Table{Value(int64(128))}, nil, []int32{0}),
	}
	return p
}

// ExampleGraph returns a graph that applies a linear layer to its first input. The graph stores the result in
// a state tensor, at the position given by the second input. The first dim of the first input is dynamic. The
// weight of the layer is stored under a key, and the bias is stored inline.
func ExampleGraph() *Graph {
	const f32, int32Type = 5, 3
	return &Graph{
		Values: []Table{
			GraphTensor(f32, -1, 0, 16, 4),              // 0: input
			GraphTensor(int32Type, -1, -1, 1),           // 1: position
			GraphTensor(f32, 0, -1, 8, 4),               // 2: weight
			GraphTensor(f32, 1, -1, 8),                  // 3: bias
			GraphTensor(f32, -1, 1, 16, 8),              // 4
			GraphTensor(f32, 2, -1, 1, 32, 1, 8),        // 5: state
			GraphTensor(f32, -1, 0, 16, 8),              // 6: output
			GraphSymInt(), GraphSymInt(), GraphSymInt(), // 7: position, 8: length, 9: end
			GraphInt(0),                                        // 10
			{0: Union{1, Table{}}},                             // 11: None
			{0: Union{3, Table{0: 0.5}}},                       // 12
			{0: Union{4, Table{0: true}}},                      // 13
			{0: Union{6, Table{0: []int64{1, 2}}}},             // 14
			{0: Union{7, Table{0: []float64{1}}}},              // 15
			{0: Union{8, Table{0: []bool{true}}}},              // 16
			GraphList(0, 8),                                    // 17
			{0: Union{10, Table{0: "a\nb"}}},                   // 18
			GraphTensor(f32, -1, -1, 1, 16, 1, 8), GraphInt(1), // 19, 20
		},
		Operators: []Table{
			Operator(0, "et_vk.select_as_symint.default", 1, 10, 10, 7),
			Operator(1, "sym_size.int", 0, 10, 8),
			Operator(2, "add", 7, 8, 9),
			Operator(3, "aten.linear.default", 0, 2, 3, 4),
			Operator(5, "aten.view_copy.default", 4, 17, 19),
			Operator(6, "update_cache.default", 19, 5, 7, 11),
			Operator(7, "new.operator", 4, 12, 13, 14, 15, 16, 18, 11, 6),
		},
		Inputs: []uint32{0, 1}, Outputs: []uint32{6},
		Constants: []Table{ByKey("weight", 8*4*4), Inline(0, 32), Inline(32, 32*8*4)},
		Data:      make([]byte, 32+32*8*4),
	}
}
