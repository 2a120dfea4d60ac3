package ops

import (
	"errors"
	"strings"
	"testing"

	"gpuscope/engine/graph"
	"gpuscope/internal/wordingtest"
	"gpuscope/ops/basic"
	"gpuscope/ops/kind"
	"gpuscope/ops/weight"
)

// in adds an f32 graph input with fixed dims.
func in(b *graph.Builder, name string, dims ...int) graph.ValueID {
	dims = append([]int{}, dims...) // for a scalar, empty instead of nil
	return b.Input(name, graph.F32, dims, dims)
}

func TestBuildRefusesArgumentsThatDoNotFit(t *testing.T) {
	golden := wordingtest.New(t)
	for _, c := range []struct {
		name  string
		build func(b *graph.Builder)
	}{
		{
			"rms_norm with a weight of another width",
			func(b *graph.Builder) { RMSNorm(b, "layer3.it", in(b, "x", 2, 8), in(b, "w", 4), 1e-5) },
		},
		{"layer_norm with a bias of another width", func(b *graph.Builder) {
			basic.LayerNorm(b, "layer3.it", in(b, "x", 2, 8), in(b, "w", 8), in(b, "c", 4), 1e-5)
		}},
		{
			"operands that do not broadcast",
			func(b *graph.Builder) { basic.Add(b, "layer3.it", in(b, "x", 3, 4), in(b, "y", 2, 4), 1) },
		},
		{
			"silu_mul of two shapes",
			func(b *graph.Builder) { basic.SiLUMul(b, "layer3.it", in(b, "g", 4), in(b, "u", 1, 4)) },
		},
		{"rope of odd heads", func(b *graph.Builder) {
			ApplyRotaryEmb(b, "layer3.it", in(b, "q", 2, 1, 3), in(b, "k", 2, 1, 3), in(b, "c", 2, 1),
				in(b, "s", 2, 1))
		}},
		{"rope of a q and k of different length", func(b *graph.Builder) {
			ApplyRotaryEmb(b, "layer3.it", in(b, "q", 2, 1, 4), in(b, "k", 3, 1, 4), in(b, "c", 2, 2),
				in(b, "s", 2, 2))
		}},
		{"rope with too few rows of the tables", func(b *graph.Builder) {
			ApplyRotaryEmb(b, "layer3.it", in(b, "q", 2, 1, 4), in(b, "k", 2, 1, 4), in(b, "c", 1, 2),
				in(b, "s", 2, 2))
		}},
		{"rope_hf with tables wider than a head", func(b *graph.Builder) {
			ApplyRotaryEmbHF(b, "layer3.it", in(b, "q", 2, 1, 4), in(b, "k", 2, 1, 4), in(b, "c", 4, 6),
				in(b, "s", 4, 6), kind.Fixed(0))
		}},
		{"rope_hf past the tables", func(b *graph.Builder) {
			ApplyRotaryEmbHF(b, "layer3.it", in(b, "q", 2, 1, 4), in(b, "k", 2, 1, 4), in(b, "c", 4, 4),
				in(b, "s", 4, 4), kind.Fixed(3))
		}},
		{
			"rope_interleaved of another shape",
			func(b *graph.Builder) {
				basic.ApplyRotaryEmbInterleaved(b, "layer3.it", in(b, "x", 2, 4),
					in(b, "f", 3, 4))
			},
		},
		{
			"argmax of a scalar", func(b *graph.Builder) { basic.Argmax(b, "layer3.it", in(b, "x"), false) },
		},
		{
			"cat of two ranks",
			func(b *graph.Builder) { basic.Cat(b, "layer3.it", 0, in(b, "x", 2), in(b, "y", 2, 2)) },
		},
		{
			"cat of parts that differ elsewhere",
			func(b *graph.Builder) { basic.Cat(b, "layer3.it", 0, in(b, "x", 2, 3), in(b, "y", 2, 4)) },
		},
		{"cat of nothing", func(b *graph.Builder) { basic.Cat(b, "layer3.it", 0) }},
		{"expand of a dim that is not 1", func(b *graph.Builder) {
			New(b, "expand", "layer3.it", kind.Args{"x": in(b, "x", 2, 3), "size": []int{4, 3}})
		}},
		{"expand to fewer dims", func(b *graph.Builder) {
			New(b, "expand", "layer3.it", kind.Args{"x": in(b, "x", 2, 3), "size": []int{3}})
		}},
		{"expand that leaves a new dim as it is", func(b *graph.Builder) {
			New(b, "expand", "layer3.it", kind.Args{"x": in(b, "x", 3), "size": []int{-1, 3}})
		}},
		{"flip of a dim twice", func(b *graph.Builder) {
			New(b, "flip", "layer3.it", kind.Args{"x": in(b, "x", 2, 3), "dims": []int{1, -1}})
		}},
		{"embedding of a cube", func(b *graph.Builder) {
			ids := b.Input("ids", graph.I32, []int{1}, []int{1})
			Embedding(b, "layer3.it", weight.Dense(b, in(b, "t", 2, 2, 2)), ids)
		}},
		{
			"embedding by floats",
			func(b *graph.Builder) {
				Embedding(b, "layer3.it", weight.Dense(b, in(b, "t", 2, 2)), in(b, "ids", 1))
			},
		},
		{"embedding_q4gsw in groups that do not divide", func(b *graph.Builder) {
			Embedding(b, "layer3.it", q4Noise("t", 2, 40, 16),
				b.Input("ids", graph.I32, []int{1}, []int{1}))
		}},
		{
			"permute that drops a dim",
			func(b *graph.Builder) { basic.Permute(b, "layer3.it", in(b, "x", 2, 3), 0, 0) },
		},
		{
			"select past the dim", func(b *graph.Builder) {
				basic.Select(b, "layer3.it", in(b, "x", 2, 3), 1, 3)
			},
		},
		{
			"select of a dim that is not there",
			func(b *graph.Builder) { basic.Select(b, "layer3.it", in(b, "x", 2, 3), 2, 0) },
		},
		{
			"slice past the dim",
			func(b *graph.Builder) {
				basic.Slice(b, "layer3.it", in(b, "x", 4, 3), 0, kind.Fixed(2), kind.Fixed(3))
			},
		},
		{
			"slice that leaves nothing",
			func(b *graph.Builder) {
				basic.SliceRange(b, "layer3.it", in(b, "x", 4, 3), 0, kind.Fixed(3), kind.Fixed(2),
					1)
			},
		},
		{
			"slice with step 0",
			func(b *graph.Builder) {
				basic.SliceRange(b, "layer3.it", in(b, "x", 4, 3), 0, kind.Fixed(0), kind.Fixed(2),
					0)
			},
		},
		{
			"sum over dims apart",
			func(b *graph.Builder) { basic.Sum(b, "layer3.it", in(b, "x", 2, 3, 4), []int{0, 2}, false) },
		},
		{
			"sum over no dims", func(b *graph.Builder) {
				basic.Sum(b, "layer3.it", in(b, "x", 2), nil, false)
			},
		},
		{"update_cache past the cache", func(b *graph.Builder) {
			basic.UpdateCache(b, "layer3.it",
				in(b, "v", 1, 3, 2, 4), b.State("c", graph.F32, []int{1, 4, 2, 4}),
				kind.Fixed(2))
		}},
		{"update_cache of another type", func(b *graph.Builder) {
			basic.UpdateCache(b, "layer3.it",
				in(b, "v", 1, 3, 2, 4), b.State("c", graph.F16, []int{1, 4, 2, 4}),
				kind.Fixed(0))
		}},
		{"update_cache of a batch", func(b *graph.Builder) {
			basic.UpdateCache(b, "layer3.it",
				in(b, "v", 2, 3, 2, 4), b.State("c", graph.F32, []int{2, 4, 2, 4}),
				kind.Fixed(0))
		}},
		{
			"view of another element count",
			func(b *graph.Builder) {
				basic.View(b, "layer3.it", in(b, "x", 2, 3), kind.Fixed(4), basic.Rest)
			},
		},
		{
			"view with two dims to work out",
			func(b *graph.Builder) { basic.View(b, "layer3.it", in(b, "x", 2, 3), basic.Rest, basic.Rest) },
		},
		{
			"select_as_symint of floats",
			func(b *graph.Builder) { basic.SelectAsSymInt(b, "layer3.it", in(b, "x", 2), []int{0}, 0, 1) },
		},
		{
			"floordiv by 0",
			func(b *graph.Builder) {
				basic.SymFloorDiv(b, "layer3.it", kind.Sym(b.SymInt("a", 0, 1, 0)), kind.Fixed(0))
			},
		},
		{"mul past 32 bits", func(b *graph.Builder) {
			basic.SymMul(b, "layer3.it", kind.Sym(b.SymInt("a", 0, 1<<20, 0)), kind.Sym(b.SymInt("b", 0,
				1<<20, 0)))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := tinyBuilder()
			c.build(b)
			_, err := b.Finish()
			golden.Error(c.name, err)
			if err != nil && !strings.Contains(err.Error(), "layer3.it") {
				t.Errorf("%v does not name the operator", err)
			}
		})
	}
}

// After the first error constructors do nothing, and Finish returns that error.
func TestConstructorsPassAnEarlierErrorOn(t *testing.T) {
	first := errors.New("the first error")
	for name, build := range map[string]func(b *graph.Builder, x graph.ValueID){
		"a chain": func(b *graph.Builder, x graph.ValueID) {
			y := RMSNorm(b, "norm", x, x, 1e-5)
			y = basic.Add(b, "add", y, x, 1)
			y = basic.View(b, "view", y, basic.Rest)
			q, k := ApplyRotaryEmb(b, "rope", y, x, x, x)
			y = basic.Cat(b, "cat", 0, q, k, basic.Slice(b, "slice", y, 0, kind.Fixed(0), kind.Sym(basic.SymSize(b, "layer3.it", y, 0))))
			basic.UpdateCache(b, "update", y, x, kind.Fixed(0))
			b.Output(basic.Argmax(b, "argmax", basic.Softmax(b, "softmax", y), false))
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := tinyBuilder()
			b.Errorf("%w", first)
			build(b, in(b, "x", 4))
			if _, err := b.Finish(); !errors.Is(err, first) {
				t.Errorf("got %v, want %v", err, first)
			}
		})
	}
}
