package graph_test

import (
	"slices"
	"testing"

	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/engine/graph/graphtest"
	"gpuscope/trace"
)

// subtract returns a kernel whose operands all have the same type, and so do its params. Only the names
// distinguish them.
func subtract() *graph.Kernel {
	return &graph.Kernel{
		Name: "subtract", WorkgroupSize: [3]uint32{64, 1, 1},
		Storage: []graph.Storage{
			{Name: "a", Elem: "f32"},
			{Name: "b", Elem: "f32"},
			{Name: "y", Elem: "f32", Access: gpu.ReadWrite},
		},
		Params: []trace.Param{{Name: "n", Type: "u32"}, {Name: "words", Type: "u32", Offset: 4}},
	}
}

func TestAddingAnOperatorChecksItsBindingNames(t *testing.T) {
	for _, c := range []struct {
		name  string
		names []string
		want  string
	}{
		{"in the kernel's order", []string{"a", "b", "y"}, ""},
		{
			"two of one type that changed places",
			[]string{"b", "a", "y"},
			"b subtract a 0",
		},
		{"too few", []string{"a", "y"}, "2 subtract 3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := graph.NewBuilder(gpu.DefaultLimits())
			x, out := b.Input("x", graph.F32, []int{4}, []int{4}), b.Tensor("y", graph.F32)
			use := graph.Use{Kernel: subtract()}
			for _, name := range c.names {
				v := x
				if name == "y" {
					v = out
				}
				use.Bind = append(use.Bind, graph.Bind(name, v))
			}
			b.Add("y", &graphtest.FuncOp{
				Declares: graph.Spec{
					Kind: "sub", Inputs: []graph.ValueID{x}, Outputs: []graph.ValueID{out},
					Slots: []graph.Slot{{Uses: []graph.Use{use}}},
				},
				Bounds: func(r *graph.Ranges) []graph.Corner { return r.Ends(x) },
				Plans: func(p *graph.Planner) error {
					p.SetDims(out, 4)
					p.Dispatch(0, graphtest.Threads(p, 4, 64)).Params.U32("n", 4).U32("words", 1)
					return nil
				},
			})
			if err := b.Err(); c.want == "" && err != nil {
				t.Error(err)
			} else if c.want != "" && (err == nil || !graphtest.Mentions(err, c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestKernelReplacementNeedsSameBindingsParamsAndWorkgroups(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(k *graph.Kernel)
		want   string
	}{
		{"another source", func(k *graph.Kernel) { k.Source = "// better" }, ""},
		{"a result that is read as well", func(k *graph.Kernel) { k.Storage[2].Read = true }, ""},
		{
			"two fields of one type that changed places", func(k *graph.Kernel) { slices.Reverse(k.Params) },
			"0 subtract words: u32 subtract n: u32",
		},
		{
			"a field of another type", func(k *graph.Kernel) { k.Params[1].Type = "i32" },
			"1 subtract words: i32",
		},
		{
			"a field less", func(k *graph.Kernel) { k.Params = k.Params[:1] },
			"1 subtract 2",
		},
		{
			"two operands that changed places", func(k *graph.Kernel) { slices.Reverse(k.Storage[:2]) },
			"0 subtract read b: f32 subtract read a: f32",
		},
		{
			"an operand that is written", func(k *graph.Kernel) { k.Storage[1].Access = gpu.ReadWrite },
			"1 subtract read_write b: f32",
		},
		{"operands of another type", func(k *graph.Kernel) { k.Storage[0].Elem = "u32" }, "is read a: u32"},
		{"one operand fewer", func(k *graph.Kernel) { k.Storage = k.Storage[1:] }, "subtract 2 subtract 3"},
		{
			"other workgroups", func(k *graph.Kernel) { k.WorkgroupSize[0] = 32 },
			"[32 1 1] subtract [64 1 1]",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := subtract()
			c.change(k)
			if err := k.CanReplace(subtract()); c.want == "" && err != nil {
				t.Error(err)
			} else if c.want != "" && (err == nil || !graphtest.Mentions(err, c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestWordBindingsTakeAnyType(t *testing.T) {
	for elem, want := range map[string][]graph.DType{
		"u32": {graph.F32, graph.F16, graph.I32, graph.U32, graph.Q4}, "f32": {graph.F32}, "i32": {graph.I32}, "f16": {graph.F16},
		"": {graph.F32, graph.F16, graph.I32, graph.U32, graph.Q4},
	} {
		for _, dtype := range []graph.DType{graph.F32, graph.F16, graph.I32, graph.U32, graph.Q4} {
			if got := (graph.Storage{Elem: elem}).Takes(dtype); got != slices.Contains(want, dtype) {
				t.Errorf("a binding of %q accepts %s: %v", elem, dtype, got)
			}
		}
	}
}
