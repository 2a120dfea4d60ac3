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

func TestSumWithNormIsDeferredToLaterProducts(t *testing.T) {
	linear := func(b *graph.Builder, name string, x graph.ValueID) graph.ValueID {
		k := shape.Last(b.MaxDims(x))
		return Linear(b, name, x, noiseMatrix(name+".w", k, k, weight.Q8_0), graph.None)
	}
	norm := func(b *graph.Builder, name string, x graph.ValueID) graph.ValueID {
		return RMSNorm(b, name, x, constant(b, name+".w", shape.Last(b.MaxDims(x))), 1e-5)
	}
	type values struct{ x, y, sum, h graph.ValueID }
	behind := func(b *graph.Builder, v values) {
		b.Output(basic.Add(b, "next", v.sum, linear(b, "down", linear(b, "gate", v.h)), 1))
	}
	all := []string{"o", "sum", "norm", "gate", "down", "next"}
	for name, c := range map[string]struct {
		k      int
		build  func(b *graph.Builder, v values)
		Routes map[string]string
		want   []string // for one row
	}{
		"one product": {build: behind, want: []string{"o", "gate", "down", "next"}},
		"several products": {build: func(b *graph.Builder, v values) {
			b.Output(linear(b, "up", v.h))
			behind(b, v)
		}, want: []string{"o", "up", "gate", "down", "next"}},
		"the next sum also has a norm": {build: func(b *graph.Builder, v values) {
			s := normWithResidual(b, "next", linear(b, "down", linear(b, "gate", v.h)), v.sum)
			b.Output(linear(b, "q", norm(b, "norm2", s)))
			b.Output(basic.Sigmoid(b, "s", s))
		}, want: []string{"o", "gate", "down", "q", "s"}},
		"another operator reads the sum before the products": {build: func(b *graph.Builder, v values) {
			b.Output(basic.Sigmoid(b, "s", v.sum))
			behind(b, v)
		}, want: []string{"o", "sum", "s", "gate", "down", "next"}},
		"another operator reads a view of the sum": {build: func(b *graph.Builder, v values) {
			behind(b, v)
			b.Output(basic.Sigmoid(b, "s", basic.View(b, "v", v.sum, kind.Fixed(1), basic.Rest,
				kind.Fixed(32))))
		}, want: []string{"o", "sum", "gate", "down", "next", "s"}},
		"the sum is an output": {build: func(b *graph.Builder, v values) {
			b.Output(v.sum)
			behind(b, v)
		}, want: []string{"o", "sum", "gate", "down", "next"}},
		"the sum has a second norm": {build: func(b *graph.Builder, v values) {
			behind(b, v)
			b.Output(linear(b, "k", norm(b, "norm2", v.sum)))
		}, want: []string{"o", "sum", "gate", "down", "k", "next"}},
		"another operator reads the norm": {build: func(b *graph.Builder, v values) {
			behind(b, v)
			b.Output(basic.Sigmoid(b, "s", v.h))
		}, want: []string{"o", "sum", "norm", "gate", "s", "down", "next"}},
		"the products are large": {k: 2048, build: func(b *graph.Builder, v values) {
			b.Output(Linear(b, "head", v.h, noiseMatrix("head.w", 64<<10, 2048, weight.Q4_0), graph.None))
		}, want: []string{"o", "sum", "head"}},
		"a later product is forced onto tiles": {
			build: behind, Routes: map[string]string{"linear_q8_0@gate": "tile64"}, want: all,
		},
		"the previous product is forced onto tiles": {
			build: behind, Routes: map[string]string{"linear_q8_0@o": "tile64"},
			want: []string{"o", "sum", "gate", "down", "next"},
		},
		"the sum is forced onto its route for many rows": {
			build: behind, Routes: map[string]string{"rms_norm@sum": "rows"},
			want: []string{"o", "sum", "gate", "down", "next"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := graph.NewBuilder(gpu.DefaultLimits())
			b.AskRoutes(c.Routes)
			b.Fuse(fuseNormSum, fuseNorm)
			k := max(c.k, 32)
			x := b.Input("x", graph.F32, []int{1, 1, k}, []int{1, 9, k})
			y := linear(b, "o", x)
			sum := normWithResidual(b, "sum", y, x)
			c.build(b, values{x, y, sum, norm(b, "norm", sum)})
			g, err := b.Finish()
			if err != nil {
				t.Fatal(err)
			}
			got, want := runningAt(t, g, 1, 1, k), slices.Sorted(slices.Values(c.want))
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Errorf("one row runs %v, want %v", got, want)
			}
			nine := runningAt(t, g, 1, 9, k)
			if !slices.Contains(nine, "sum") || !slices.Contains(nine, "norm") {
				t.Errorf("nine rows run %v, want the sum and the norm among them", nine)
			}
		})
	}
}

// A product prepares a norm only as the main input of the sum before it, not as the residual.
func TestProductAddedToANormPreparesNone(t *testing.T) {
	g := fusedBy(t, func(b *graph.Builder) {
		linear := func(name string, x graph.ValueID) graph.ValueID {
			return Linear(b, name, x, noiseMatrix(name+".w", 32, 32, weight.Q8_0), graph.None)
		}
		x := b.Input("x", graph.F32, []int{1, 1, 32}, []int{1, 9, 32})
		sum := normWithResidual(b, "sum", linear("o", x), linear("r", x))
		b.Output(linear("next", RMSNorm(b, "norm", sum, constant(b, "norm.w", 32), 1e-5)))
	}, large, fuseNormSum, fuseNorm)
	g.Operators(func(_ graph.OpID, name string, o graph.Operator) bool {
		if o, ok := o.(*linear); ok && (o.next != nil) != (name == "o") {
			t.Errorf("%s prepares a norm: %v", name, o.next != nil)
		}
		return true
	})
}

// A product that is fused with a sum may use other tiles than it would alone, because its lanes fill
// workgroup memory. The squares that it sums for the next norm must cover the rows of the tiles in use.
func TestProductWithAFusedSumWritesRowSquares(t *testing.T) {
	limits := large
	limits.MaxWorkgroupStorage = 16 << 10
	g := fusedBy(t, func(b *graph.Builder) {
		x := b.Input("x", graph.F32, []int{1, 1, 3840}, []int{1, 5, 3840})
		r := b.Input("r", graph.F32, []int{1, 1, 4096}, []int{1, 5, 4096})
		h := x
		for i, residual := range []graph.ValueID{x, r} {
			n, name := shape.Last(b.MaxDims(residual)), string(rune('1'+i))
			h = Linear(b, "o"+name, h, noiseMatrix("o.w"+name, n, 3840, weight.Q8_0), graph.None)
			sum := normWithResidual(b, "sum"+name, h, residual)
			h = RMSNorm(b, "norm"+name, sum, constant(b, "norm.w"+name, n), 1e-5)
		}
		b.Output(Linear(b, "next", h, noiseMatrix("next.w", 32, 4096, weight.Q8_0), graph.None))
	}, limits, fuseNormSum, fuseNorm)
	given := 0
	g.Operators(func(_ graph.OpID, name string, o graph.Operator) bool {
		if o, ok := o.(*linear); ok && o.next != nil {
			if given++; o.next.each != o.shapes[linearGEMV].rows {
				t.Errorf("a sum of %d squares, want %d: the rows of the tile",
					o.next.each, o.shapes[linearGEMV].rows)
			}
		}
		return true
	})
	if given != 2 {
		t.Errorf("%d products write partial sums for a norm, want 2", given)
	}
}

// normSumGraph draws a graph with two sums in sequence, each with a norm, and weights in one format.
func normSumGraph(t *rapid.T) func(b *graph.Builder) { return normSumsGraph(t, 2) }

// normSumsGraph draws a normSumGraph with the given number of sums.
func normSumsGraph(t *rapid.T, sums int) func(b *graph.Builder) {
	f := drawFormat(t)
	whole := func(k int) bool { return k%f.Pieces[0].Cols == 0 }
	k := rapid.SampledFrom([]int{256, 320}).Filter(whole).Draw(t, "columns")
	outs := rapid.SliceOfN(rapid.IntRange(1, 70), 0, 2).Draw(t, "rows of weights besides")
	gated, bias := rapid.Bool().Draw(t, "gated"), rapid.Bool().Draw(t, "bias")
	return func(b *graph.Builder) {
		x := b.Input("x", graph.F32, []int{1, 1, k}, []int{1, 5, k})
		linear := func(name string, n int, x graph.ValueID) graph.ValueID {
			with := graph.None
			if bias {
				with = constant(b, name+".bias", n)
			}
			return Linear(b, name, x, noiseMatrix(name+".w", n, k, f), with)
		}
		s, h := x, x
		for i := range sums {
			layer := string(rune('1' + i))
			s = normWithResidual(b, "sum"+layer, linear("o"+layer, k, h), s)
			norm := RMSNorm(b, "norm"+layer, s, constant(b, "norm.w"+layer, k), 1e-5)
			for i, n := range outs {
				b.Output(linear(string(rune('a'+i))+layer, n, norm))
			}
			if h = linear("gate"+layer, k, norm); gated {
				h = basic.GELUMul(b, "gelu"+layer, h, linear("up"+layer, k, norm))
			}
		}
		b.Output(basic.Add(b, "end", s, h, 1))
	}
}

func normSumPoints(k int) (list []step) {
	for _, rows := range []int{5, 1, 5, 1} {
		list = append(list, step{"x": {1, rows, k}})
	}
	return list
}

func TestFusingSumsIntoProductsKeepsResults(t *testing.T) {
	limits := gpu.DefaultLimits()
	limits.MaxStorageBuffers = 11 // weights of some formats are stored in four arrays
	rapid.Check(t, func(t *rapid.T) {
		build := normSumGraph(t)
		if referencesAgreeOn(t, limits, fuseNormSum, build, normSumPoints(columnsOf(build))) == 0 {
			t.Fatal("nothing was fused")
		}
	})
}

func TestSumsFusedIntoProductsOnTheGPU(t *testing.T) {
	dev := gputest.Open(t)
	for seed := range few(8) {
		build := rapid.Custom(normSumGraph).Example(seed)
		kernelsAgreeWithin(t, dev, fuseNormSum, build, normSumPoints(columnsOf(build)), 2e-4)
	}
}
