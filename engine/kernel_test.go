package engine

import (
	"slices"
	"strings"
	"testing"

	"gpuscope/engine/gpu"
	"gpuscope/trace"
)

// subtract has operands and fields of one type each, so that only their names tell them apart.
func subtract() *Kernel {
	return &Kernel{
		Name: "subtract", WorkgroupSize: [3]uint32{64, 1, 1},
		Storage: []Storage{
			{Name: "a", Elem: "f32"},
			{Name: "b", Elem: "f32"},
			{Name: "y", Elem: "f32", Access: gpu.ReadWrite},
		},
		Params: []trace.Param{{Name: "n", Type: "u32"}, {Name: "words", Type: "u32", Offset: 4}},
	}
}

func TestBindingsAreHeldToTheirNamesWhenAnOperatorIsAdded(t *testing.T) {
	for _, c := range []struct {
		name  string
		names []string
		want  string
	}{
		{"as the kernel has them", []string{"a", "b", "y"}, ""},
		{
			"two of one type that changed places",
			[]string{"b", "a", "y"},
			`slot "" binds b where kernel subtract has a, its binding 0`,
		},
		{"too few", []string{"a", "y"}, "binds 2 values to kernel subtract, which has 3 storage bindings"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := NewBuilder(gpu.DefaultLimits())
			x, out := b.Input("x", F32, []int{4}, []int{4}), b.Tensor("y", F32)
			use := Use{Kernel: subtract()}
			for _, name := range c.names {
				v := x
				if name == "y" {
					v = out
				}
				use.Bind = append(use.Bind, Bind(name, v))
			}
			b.Add("y", &funcOp{
				spec: Spec{
					Kind: "sub", Inputs: []ValueID{x}, Outputs: []ValueID{out},
					Slots: []Slot{{Uses: []Use{use}}},
				},
				corners: func(r *Ranges) []Corner { return r.Ends(x) },
				plan: func(p *Planner) error {
					p.SetDims(out, 4)
					p.Dispatch(0, threads(p, 4, 64)).Params.U32("n", 4).U32("words", 1)
					return nil
				},
			})
			if err := b.Err(); c.want == "" && err != nil {
				t.Error(err)
			} else if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestKernelStandsForAnotherOnlyWithItsBindingsParamsAndWorkgroups(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(k *Kernel)
		want   string
	}{
		{"another source", func(k *Kernel) { k.Source = "// better" }, ""},
		{"a result that is read as well", func(k *Kernel) { k.Storage[2].Read = true }, ""},
		{
			"two fields of one type that changed places", func(k *Kernel) { slices.Reverse(k.Params) },
			"param 0 of kernel subtract is words: u32, of subtract it is n: u32",
		},
		{
			"a field of another type", func(k *Kernel) { k.Params[1].Type = "i32" },
			"param 1 of kernel subtract is words: i32",
		},
		{"a field less", func(k *Kernel) { k.Params = k.Params[:1] }, "takes 1 params, subtract takes 2"},
		{
			"two operands that changed places", func(k *Kernel) { slices.Reverse(k.Storage[:2]) },
			"binding 0 of kernel subtract is read b: f32, of subtract it is read a: f32",
		},
		{
			"an operand that is written", func(k *Kernel) { k.Storage[1].Access = gpu.ReadWrite },
			"binding 1 of kernel subtract is read_write b: f32",
		},
		{"operands of another type", func(k *Kernel) { k.Storage[0].Elem = "u32" }, "is read a: u32"},
		{"an operand less", func(k *Kernel) { k.Storage = k.Storage[1:] }, "has 2 storage bindings"},
		{
			"other workgroups", func(k *Kernel) { k.WorkgroupSize[0] = 32 },
			"has workgroups of [32 1 1], subtract of [64 1 1]",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := subtract()
			c.change(k)
			if err := k.StandsFor(subtract()); c.want == "" && err != nil {
				t.Error(err)
			} else if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestWordsTakeAnyTypeAndOtherBindingsTheirOwn(t *testing.T) {
	for elem, want := range map[string][]DType{
		"u32": {F32, F16, I32, U32, Q4}, "f32": {F32}, "i32": {I32}, "f16": {F16},
		"": {F32, F16, I32, U32, Q4},
	} {
		for _, dtype := range []DType{F32, F16, I32, U32, Q4} {
			if got := (Storage{Elem: elem}).Takes(dtype); got != slices.Contains(want, dtype) {
				t.Errorf("a binding of %q takes %s: %v", elem, dtype, got)
			}
		}
	}
}
