package ops

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/gputest"
	"gpuscope/engine/graph"
	"gpuscope/ops/basic"
	"gpuscope/ops/internal/shape"
	"gpuscope/ops/kind"
	"gpuscope/ops/weight"
)

// lastOf adds an operator that returns the last row along an axis.
func lastOf(b *graph.Builder, x graph.ValueID, axis int) graph.ValueID {
	return basic.SliceRange(b, "last", x, axis, kind.Fixed(-1), kind.Fixed(basic.ToEnd), 1)
}

func TestALinearTakesTheLastRowItself(t *testing.T) {
	input := func(b *graph.Builder, name string, k int, dims ...int) graph.ValueID {
		lowest := append(slices.Clone(dims[:len(dims)-1]), 1, k)
		return b.Input(name, graph.F32, lowest, append(dims, k))
	}
	product := func(b *graph.Builder, x graph.ValueID) graph.ValueID {
		return Linear(b, "o", x, noiseMatrix("o.w", 24, shape.Last(b.MaxDims(x)), weight.F32), graph.None)
	}
	with := func(b *graph.Builder, x, residual graph.ValueID) graph.ValueID {
		o := &linear{x: x, w: noiseMatrix("o.w", 32, 32, weight.F32), bias: graph.None, residual: residual}
		return o.add(b, "o")
	}
	both := []string{"last", "o"}
	for name, c := range map[string]struct {
		build  func(b *graph.Builder) graph.ValueID
		Routes map[string]string
		want   []string // operators that run with seven rows
	}{
		"the last row": {build: func(b *graph.Builder) graph.ValueID {
			return product(b, lastOf(b, input(b, "x", 32, 1, 9), 1))
		}, want: []string{"o"}},
		"the last row of the residual": {build: func(b *graph.Builder) graph.ValueID {
			all := input(b, "x", 32, 9)
			return with(b, b.Input("one", graph.F32, []int{1, 32}, []int{1, 32}), lastOf(b, all, 0))
		}, want: []string{"o"}},
		"only of the residual, with several rows of x": {build: func(b *graph.Builder) graph.ValueID {
			x := input(b, "x", 32, 9)
			return with(b, basic.Sigmoid(b, "y", x), lastOf(b, x, 0))
		}, want: []string{"y", "last", "o"}},
		"only of x, with several rows of the residual": {build: func(b *graph.Builder) graph.ValueID {
			x := input(b, "x", 32, 9)
			return with(b, lastOf(b, x, 0), basic.Sigmoid(b, "y", x))
		}, want: []string{"last", "y", "o"}},
		"the last two": {build: func(b *graph.Builder) graph.ValueID {
			return product(b, basic.SliceRange(b, "last", input(b, "x", 32, 9), 0, kind.Fixed(-2),
				kind.Fixed(basic.ToEnd), 1))
		}, want: both},
		"the first row": {build: func(b *graph.Builder) graph.ValueID {
			return product(b, basic.SliceRange(b, "last", input(b, "x", 32, 9), 0, kind.Fixed(0),
				kind.Fixed(1), 1))
		}, want: both},
		"the last of each batch": {build: func(b *graph.Builder) graph.ValueID {
			return product(b, lastOf(b, input(b, "x", 32, 2, 9), 1))
		}, want: both},
		"another operator reads it": {build: func(b *graph.Builder) graph.ValueID {
			x := lastOf(b, input(b, "x", 32, 9), 0)
			b.Output(x)
			return product(b, x)
		}, want: both},
		"its columns are not whole chunks": {build: func(b *graph.Builder) graph.ValueID {
			return product(b, lastOf(b, input(b, "x", 28, 9), 0))
		}, want: both},
		"its route is set to tiles": {build: func(b *graph.Builder) graph.ValueID {
			return product(b, lastOf(b, input(b, "x", 32, 9), 0))
		}, Routes: map[string]string{"linear@o": "tile64"}, want: both},
	} {
		t.Run(name, func(t *testing.T) {
			b := graph.NewBuilder(gpu.DefaultLimits())
			b.AskRoutes(c.Routes)
			b.Fuse(fuseLast)
			b.Output(c.build(b))
			g, err := b.Finish()
			if err != nil {
				t.Fatal(err)
			}
			dims := slices.Clone(g.Value(g.Inputs()[0]).MaxDims)
			dims[len(dims)-2] = 7
			if got := runningAt(t, g, dims...); !slices.Equal(got, c.want) {
				t.Errorf("seven rows run %v, want %v", got, c.want)
			}
		})
	}
}

// lastGraph builds a product of the last row, a product of one row with the last row of a residual, or a norm
// with such a residual. The weights have a random format.
func lastGraph(t *rapid.T) func(b *graph.Builder) {
	f := drawFormat(t)
	norm := rapid.IntRange(0, 3).Draw(t, "norm") == 0
	residual, bias := rapid.Bool().Draw(t, "residual"), rapid.Bool().Draw(t, "bias")
	return func(b *graph.Builder) {
		x := b.Input("x", graph.F32, []int{1, 1, 256}, []int{1, 40, 256})
		r := b.Input("r", graph.F32, []int{1, 1, 42}, []int{1, 40, 42})
		one := b.Input("one", graph.F32, []int{1, 1, 256}, []int{1, 1, 256})
		if norm {
			h := Linear(b, "h", one, noiseMatrix("h.w", 42, 256, f), graph.None)
			b.Output(normWithResidual(b, "o", h, lastOf(b, r, 1)))
			return
		}
		o := &linear{x: x, w: noiseMatrix("o.w", 42, 256, f), bias: graph.None, residual: graph.None}
		if bias {
			o.bias = constant(b, "o.bias", 42)
		}
		if residual {
			o.x, o.residual = one, lastOf(b, r, 1)
		} else {
			o.x = lastOf(b, x, 1)
		}
		b.Output(o.add(b, "o"))
	}
}

// normWithResidual adds the norm that the fusion rule norm_add creates.
func normWithResidual(b *graph.Builder, name string, x, residual graph.ValueID) graph.ValueID {
	o := &rmsNorm{
		x: x, weight: constant(b, name+".w", shape.Last(b.MaxDims(x))), y: b.Tensor(name,
			graph.F32), eps: 1e-5,
		residual: residual, lanes: 64, Vec: kind.Vec(b, x, -1),
	}
	o.makeKernel(b)
	b.Add(name, o)
	return o.y
}

var lastPoints = func() (list []step) {
	for _, rows := range [][2]int{{40, 40}, {1, 1}, {7, 7}, {7, 1}, {1, 7}, {1, 1}} {
		list = append(list, step{"x": {1, rows[0], 256}, "r": {1, rows[1], 42}, "one": {1, 1, 256}})
	}
	return list
}()

func TestComputingOnlyTheLastRowKeepsResults(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		if referencesAgree(t, fuseLast, lastGraph(t), lastPoints) == 0 {
			t.Fatal("nothing was fused")
		}
	})
}

func TestOnlyTheLastRowOnTheGPU(t *testing.T) {
	dev := gputest.Open(t)
	for seed := range few(12) {
		kernelsAgree(t, dev, fuseLast, rapid.Custom(lastGraph).Example(seed), lastPoints)
	}
}
