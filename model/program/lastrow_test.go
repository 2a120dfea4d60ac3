package program_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/gputest"
	"gpuscope/engine/graph"
	"gpuscope/internal/npy"
	"gpuscope/model/checkpoint/pte"
	p "gpuscope/model/checkpoint/pte/ptetest"
	"gpuscope/model/program"
)

// rowsOf counts the tensors of a graph that have one row of a token's numbers and those that have all.
func rowsOf(g *graph.Graph, chunk int) (one, all int) {
	for i := range g.NumValues() {
		v := g.Value(graph.ValueID(i))
		if v.Role == graph.Intermediate && len(v.MaxDims) > 2 {
			switch v.MaxDims[1] {
			case 1:
				one++
			case chunk:
				all++
			}
		}
	}
	return one, all
}

func TestLastLayerComputesOneRow(t *testing.T) {
	chunks := map[string]int{"llama-demo-4w": 127, "llama-demo-8da4w": 127, "qwen3-tiny-4w": 63}
	for name, chunk := range chunks {
		f, err := pte.Open(filepath.Join(sharedPrograms(t), name+".pte"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for _, c := range []struct {
			fuse string
			one  bool
		}{{"last", true}, {"off", false}, {"residual", false}} {
			m, err := program.Build(f, "forward", gpu.DefaultLimits(), program.Options{Fuse: c.fuse})
			if err != nil {
				t.Fatal(err)
			}
			// With the rule, the queries, attention and the MLP of the last layer have one row.
			if one, all := rowsOf(m.Graph, chunk); (one >= 15) != c.one || all < 50 {
				t.Errorf("%s, fuse %s: %d tensors with one row, %d with all", name, c.fuse, one, all)
			}
		}
		m, err := program.Build(f, "forward", gpu.DefaultLimits(), program.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, pass := range m.Graph.Passes() {
			if pass.Name == "fuse" && name != "llama-demo-8da4w" && !slices.Contains(pass.Notes, "2 × last") {
				t.Errorf("%s: notes of fuse %v, want 2 × last", name, pass.Notes)
			}
		}
	}
}

// chain makes a random graph that selects the last row of a tensor somewhere.
type chain struct {
	*rand.Rand
	p.Graph
}

const chainRows = 9

func (c *chain) value(v p.Table) int32 {
	c.Values = append(c.Values, v)
	return int32(len(c.Values) - 1)
}

func (c *chain) int(n int64) int32 { return c.value(p.GraphInt(n)) }
func (c *chain) null() int32       { return c.value(p.Table{0: p.One(1, p.Table{})}) }

// constant adds a constant with random elements.
func (c *chain) constant(dims ...uint32) int32 {
	n := uint32(1)
	for _, d := range dims {
		n *= d
	}
	at := uint64(len(c.Data))
	for range n {
		c.Data = binary.LittleEndian.AppendUint32(c.Data, math.Float32bits(c.Float32()-0.5))
	}
	c.Constants = append(c.Constants, p.Inline(at, uint64(4*n)))
	return c.value(p.GraphTensor(inF32, int32(len(c.Constants)-1), -1, dims...))
}

// op adds an operator with an output of the given shape, and returns the output.
func (c *chain) op(shape []uint32, name string, args ...int32) int32 {
	out := c.value(p.GraphTensor(inF32, -1, -1, shape...))
	c.Operators = append(c.Operators, p.Operator(uint32(len(c.Operators)), name, append(args, out)...))
	return out
}

// grow adds random operators. x and all results have the shape of whole rows: ahead, then 8.
func (c *chain) grow(x int32, steps int, ahead ...uint32) int32 {
	shape := func(last ...uint32) []uint32 { return append(slices.Clip(ahead), last...) }
	all := []int32{x}
	for range steps {
		other, y := all[c.IntN(len(all))], all[len(all)-1]
		switch n := c.IntN(10); {
		case n < 2:
			y = c.op(shape(8), "aten.linear.default", y, c.constant(8, 8), c.null())
		case n == 2:
			eps := c.value(p.Table{0: p.One(3, p.Table{0: 1e-5})})
			y = c.op(shape(8), "et_vk.rms_norm.default", y, c.constant(8), eps)
		case n < 5:
			y = c.op(shape(8), "aten.add.Tensor", other, y, c.int(1))
		case n == 5:
			y = c.op(shape(8), "aten.mul.Tensor", y, c.constant(8))
		case n == 6:
			y = c.op(shape(8), "aten.sigmoid.default", y)
		case n == 7:
			half := c.op(shape(4), "aten.slice_copy.Tensor", y, c.int(-1), c.int(4), c.int(8), c.int(1))
			y = c.op(shape(8), "aten.linear.default", half, c.constant(8, 4), c.null())
		case len(ahead) < 2:
		case n == 8: // needs all rows
			dims := c.value(p.Table{0: p.One(6, p.Table{0: []int64{1}})})
			keep := c.value(p.Table{0: p.One(4, p.Table{0: true})})
			mean := c.op([]uint32{1, 1, 8}, "aten.mean.dim", y, dims, keep, c.null())
			y = c.op(shape(8), "aten.sub.Tensor", y, mean, c.int(1))
		default:
			one, rows := c.int(1), c.value(p.GraphSymInt())
			id := uint32(len(c.Operators))
			c.Operators = append(c.Operators, p.Operator(id, "sym_size.int", y, one, rows))
			halves := c.value(p.GraphList(one, rows, c.int(2), c.int(4)))
			y = c.op(shape(2, 4), "aten.view_copy.default", y, halves)
			y = c.op(shape(8), "aten.view_copy.default", y, c.value(p.GraphList(one, rows, c.int(8))))
		}
		all = append(all, y)
	}
	return all[len(all)-1]
}

// drawChain returns a program with the input [1, S, 8], S up to chainRows, and one output.
func drawChain(t *testing.T, seed uint64) *pte.File {
	c := &chain{Rand: rand.New(rand.NewPCG(seed, 1))}
	x := c.value(p.GraphTensor(inF32, -1, -1, 1, chainRows, 8))
	y := c.op([]uint32{1, chainRows, 8}, "aten.linear.default", x, c.constant(8, 8), c.null())
	y = c.grow(y, 1+c.IntN(8), 1, chainRows)
	ahead := []uint32{1}
	if c.IntN(2) == 0 {
		y = c.op([]uint32{1, 8}, "aten.select_copy.int", y, c.int(1), c.int(-1))
	} else {
		ahead = append(ahead, 1)
		y = c.op([]uint32{1, 1, 8}, "aten.slice_copy.Tensor", y, c.int(1), c.int(-1), c.int(1<<62), c.int(1))
	}
	y = c.op(append(ahead, 8), "aten.neg.default", c.grow(y, c.IntN(4), ahead...))
	c.Inputs, c.Outputs = []uint32{uint32(x)}, []uint32{uint32(y)}
	sizes := []int32{1, 8}
	if len(ahead) > 1 {
		sizes = []int32{1, 1, 8}
	}
	return parse(t, &c.Graph, []p.Table{bounded(f32, 1, chainRows, 8), p.Tensor(f32, sizes...)})
}

func TestComputingOnlyTheLastRowKeepsResults(t *testing.T) {
	dev := gputest.Open(t)
	fewer := 0
	for seed := range uint64(24) {
		f := drawChain(t, seed)
		var runs [2]*program.Program
		var one [2]int
		for i, fuse := range []string{"off", "last"} {
			m, err := program.Build(f, "forward", dev.Info().Limits, program.Options{Fuse: fuse})
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if runs[i], err = program.Load(dev, m); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			defer runs[i].Release()
			one[i], _ = rowsOf(m.Graph, chainRows)
		}
		if one[1] > one[0] {
			fewer++
		}
		for _, rows := range []int{chainRows, 1, 4} {
			in := &npy.Array{Type: npy.Float32, Dims: []int{1, rows, 8}}
			for k := range 8 * rows {
				bits := math.Float32bits(float32(math.Sin(float64(k))))
				in.Data = binary.LittleEndian.AppendUint32(in.Data, bits)
			}
			want, err := runs[0].Run(t.Context(), []*npy.Array{in})
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			got, err := runs[1].Run(t.Context(), []*npy.Array{in})
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if !slices.Equal(got[0].Dims, want[0].Dims) {
				t.Errorf("seed %d: shape %v, want %v", seed, got[0].Dims, want[0].Dims)
			}
			for k, w := range floats(want[0]) {
				if g := floats(got[0])[k]; !(math.Abs(float64(g-w)) <= 1e-5*(1+math.Abs(float64(w)))) {
					t.Fatalf("seed %d, %d rows: element %d is %v, want %v", seed, rows, k, g, w)
				}
			}
		}
	}
	if fewer < 12 {
		t.Errorf("only %d graphs compute fewer rows", fewer)
	}
}
