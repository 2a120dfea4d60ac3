package program_test

import (
	"slices"
	"strings"
	"testing"

	"gpuscope/engine/gpu/gputest"
	"gpuscope/internal/npy"
	"gpuscope/model/checkpoint/pte"
	p "gpuscope/model/checkpoint/pte/ptetest"
)

// Keys that a person has chosen name the constants. Keys that are hashes do not.
func TestConstantsHaveTheNamesOfTheFile(t *testing.T) {
	hash := strings.Repeat("0123456789abcdef", 4)
	for key, want := range map[string][]string{
		"layers.0.wq.weight": {"layers.0.wq.weight"}, hash: {"constant0"}, "two words": {"constant0"},
		"constant7": {"constant0"}, strings.Repeat("x", 90): {"constant0"},
	} {
		g := &p.Graph{
			Values: []p.Table{
				p.GraphTensor(inF32, -1, 0, 1, 4), p.GraphTensor(inF32, 0, -1, 8, 4),
				{0: p.One(1, p.Table{})},
				p.GraphTensor(inF32, -1, 1, 1, 8),
				p.GraphTensor(inF32, 1, -1, 8), p.GraphInt(1),
				p.GraphTensor(inF32, -1, 1, 1, 8),
			},
			Operators: []p.Table{
				p.Operator(0, "aten.linear.default", 0, 1, 2, 3),
				p.Operator(1, "aten.add.Tensor", 3, 4, 5, 6),
			},
			Inputs: []uint32{0}, Outputs: []uint32{6},
			Constants: []p.Table{p.ByKey(key, 128), p.Inline(0, 32)}, Data: make([]byte, 32),
		}
		m := p.Method("forward", []p.Table{p.Value(p.Tensor(f32, 1, 4)), p.Value(p.Tensor(f32, 1, 8))},
			[]int32{0}, []int32{1})
		m[5] = []p.Table{p.Chain(callOf(0, 0, 1))}
		m[7] = []p.Table{p.Delegate("VulkanBackend", 1)}
		file := p.Program{
			Named:    []p.Named{{Key: key, Data: make([]byte, 128)}},
			Segments: [][]byte{g.Bytes()}, Methods: []p.Table{m},
		}
		f, err := pte.Parse(file.Bytes(), "names.pte")
		if err != nil {
			t.Fatal(err)
		}
		method, err := build(f)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, v := range method.Graph.Describe().Values {
			if v.Role == "constant" {
				names = append(names, v.Name)
			}
		}
		if want = append(want, "constant1"); !slices.Equal(names, want) {
			t.Errorf("constants %q, want %q", names, want)
		}
	}
}

// An embedding uses all rows of a matrix, and the head only those of the vocabulary.
func TestHeadMayUseFewerRowsThanTheEmbedding(t *testing.T) {
	const rows, vocab, cols, group = 8, 6, 16, 8
	data := make([]byte, rows*cols/2)
	for i := range data {
		data[i] = byte(i*37 + 11)
	}
	scales := array(slices.Repeat([]float32{0.5}, rows*cols/group)...).Data
	g := &p.Graph{
		Values: []p.Table{
			p.GraphTensor(inI32, -1, 0, 1, 1), p.GraphTensor(1, 0, -1, rows, cols/2),
			p.GraphTensor(inF32, 1, -1, rows, cols/group), p.GraphTensor(inF32, 1, -1, cols/group, rows),
			p.GraphInt(group),
			{0: p.One(4, p.Table{0: true})},
			{0: p.One(1, p.Table{})},
			p.GraphTensor(inF32, -1, -1, 1, 1, cols), p.GraphTensor(inF32, -1, -1, 1, 1, vocab),
		},
		Operators: []p.Table{
			p.Operator(0, "et_vk.embedding_q4gsw.default", 1, 2, 4, 0, 5, 7),
			p.Operator(1, "et_vk.linear_q4gsw.default", 7, 1, 3, 4, 6, 8),
		},
		Inputs: []uint32{0}, Outputs: []uint32{8},
		Constants: []p.Table{
			p.Inline(0, uint64(len(data))), p.Inline(uint64(len(data)), uint64(len(scales))),
		},
		Data: append(slices.Clone(data), scales...),
	}
	run := load(t, gputest.Open(t), parse(t, g, []p.Table{p.Tensor(i64, 1, 1), p.Tensor(f32, 1, 1, vocab)}))
	weight := func(row, col int) float64 {
		b := data[row*cols/2+col/2]
		return 0.5 * float64(int(b>>(4*(col%2)))&15-8)
	}
	for token := range int64(rows) {
		out, err := run.Run(t.Context(), []*npy.Array{integers([]int{1, 1}, token)})
		if err != nil {
			t.Fatal(err)
		}
		for row, got := range floats(out[0]) {
			want := 0.0
			for k := range cols {
				want += weight(row, k) * weight(int(token), k)
			}
			if float64(got) != want { // small multiples of 1/4 are exact
				t.Errorf("token %d, row %d: %v, want %v", token, row, got, want)
			}
		}
	}
}
