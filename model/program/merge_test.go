package program_test

import (
	"slices"
	"testing"

	"gpuscope/engine/gpu/gputest"
	"gpuscope/internal/npy"
	"gpuscope/internal/wordingtest"
	"gpuscope/model/checkpoint/pte"
	p "gpuscope/model/checkpoint/pte/ptetest"
)

// several returns a program that calls delegates. values are the tensors of the method.
func several(t *testing.T, graphs []*p.Graph, values []p.Table, inputs, outputs []int32,
	instructions ...p.Table,
) *pte.File {
	t.Helper()
	all := make([]p.Table, len(values))
	for i, v := range values {
		all[i] = p.Value(v)
	}
	m := p.Method("forward", all, inputs, outputs)
	file := p.Program{}
	var delegates []p.Table
	for i, g := range graphs {
		file.Segments = append(file.Segments, g.Bytes())
		delegates = append(delegates, p.Delegate("VulkanBackend", i))
	}
	m[5] = []p.Table{p.Chain(instructions...)}
	m[6] = []p.Table{{0: "aten::copy_"}}
	m[7] = delegates
	file.Methods = []p.Table{m}
	f, err := pte.Parse(file.Bytes(), "several.pte")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func callOf(delegate int32, args ...int32) p.Table {
	return p.Instruction(2, p.Table{0: delegate, 1: args})
}

func copyOf(to, from int32) p.Table {
	return p.Instruction(1, p.Table{0: int32(0), 1: []int32{to, from, to}})
}

// unary returns a graph that applies an operator to a tensor of up to 8 elements.
func unary(name string) *p.Graph {
	return &p.Graph{
		Values:    []p.Table{p.GraphTensor(inF32, -1, 0, 8), p.GraphTensor(inF32, -1, 1, 8)},
		Operators: []p.Table{p.Operator(3, name, 0, 1)}, Inputs: []uint32{0}, Outputs: []uint32{1},
	}
}

func TestDelegatesPassValuesToEachOther(t *testing.T) {
	dev := gputest.Open(t)
	tensors := slices.Repeat([]p.Table{bounded(f32, 8)}, 6)
	add, square := sum(), sum(p.Operator(7, "aten.mul.Tensor", 0, 1, 3))
	// 2 = 0 + 1; 3 is a copy of 2; 4 = 3 * 2; 5 is a copy of 1. The outputs are 4, 2, 3 and 5.
	f := several(t, []*p.Graph{add, square}, tensors, []int32{0, 1}, []int32{4, 2, 3, 5},
		callOf(0, 0, 1, 2), copyOf(3, 2), callOf(1, 3, 2, 4), copyOf(5, 1))
	run := load(t, dev, f)
	for n := 1; n <= 8; n += 3 {
		a, b := make([]float32, n), make([]float32, n)
		want := make([][]float32, 4)
		for i := range a {
			a[i], b[i] = float32(i), 2
			s := a[i] + b[i]
			for k, v := range []float32{s * s, s, s, 2} {
				want[k] = append(want[k], v)
			}
		}
		out, err := run.Run(t.Context(), []*npy.Array{array(a...), array(b...)})
		if err != nil {
			t.Fatal(err)
		}
		for k := range want {
			if got := floats(out[k]); !slices.Equal(got, want[k]) {
				t.Errorf("%d elements, output %d: %v, want %v", n, k, got, want[k])
			}
		}
	}
	m, err := build(f)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, op := range m.Graph.Describe().Ops {
		names = append(names, op.Name)
	}
	if want := []string{"7.add", "15.mul"}; !slices.Equal(names, want) { // 7 + 8
		t.Errorf("operators %v, want %v", names, want)
	}
}

func TestCallsOfOneDelegateShareItsBuffers(t *testing.T) {
	cache := p.GraphTensor(inF32, 0, -1, 1, 4, 1, 2)
	g := &p.Graph{ // writes the value to the cache at position 0, after it has returned the cache's sum
		Values: []p.Table{
			p.GraphTensor(inF32, -1, 0, 1, 1, 1, 2), cache, p.GraphInt(0),
			{0: p.One(1, p.Table{})},
			{0: p.One(6, p.Table{0: []int64{1}})},
			{0: p.One(4, p.Table{0: true})},
			p.GraphTensor(inF32, -1, 1, 1, 1, 1, 2),
		},
		Operators: []p.Table{
			p.Operator(0, "aten.sum.dim_IntList", 1, 4, 5, 3, 6),
			p.Operator(1, "update_cache.default", 0, 1, 2, 3),
		},
		Inputs: []uint32{0}, Outputs: []uint32{6},
		Constants: []p.Table{p.Inline(0, 32)}, Data: make([]byte, 32),
	}
	values := slices.Repeat([]p.Table{p.Tensor(f32, 1, 1, 1, 2)}, 4)
	f := several(t, []*p.Graph{g}, values, []int32{0, 1}, []int32{2, 3}, callOf(0, 0, 2), callOf(0, 1, 3))
	run := load(t, gputest.Open(t), f)
	in := func(v float32) *npy.Array {
		a := array(v, v+0.5)
		a.Dims = []int{1, 1, 1, 2}
		return a
	}
	for i, want := range [][]float32{{0, 0, 1, 1.5}, {2, 2.5, 1, 1.5}} {
		out, err := run.Run(t.Context(), []*npy.Array{in(1), in(2)})
		if err != nil {
			t.Fatal(err)
		}
		if got := append(floats(out[0]), floats(out[1])...); !slices.Equal(got, want) {
			t.Errorf("run %d: %v, want %v", i, got, want)
		}
	}
}

func TestDelegatesThatDoNotFitAreRefused(t *testing.T) {
	golden := wordingtest.New(t)
	wide := unary("aten.neg.default")
	wide.Values = slices.Repeat([]p.Table{p.GraphTensor(inF32, -1, 0, 9)}, 2)
	f := several(t, []*p.Graph{unary("aten.abs.default"), wide},
		[]p.Table{bounded(f32, 8), bounded(f32, 8), bounded(f32, 9)}, []int32{0}, []int32{2},
		callOf(0, 0, 1), callOf(1, 1, 2))
	_, err := build(f)
	golden.Error("another shape", err)
}
