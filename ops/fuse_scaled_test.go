package ops

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/gputest"
	"gpuscope/engine/graph"
	"gpuscope/ops/basic"
	"gpuscope/ops/weight"
)

func TestEmbeddingAppliesItsScale(t *testing.T) {
	for name, c := range map[string]struct {
		build func(b *graph.Builder, x graph.ValueID) graph.ValueID
		want  []string
	}{
		"a scalar": {func(b *graph.Builder, x graph.ValueID) graph.ValueID {
			return basic.Mul(b, "scale", x, constant(b, "factor", 1))
		}, []string{"embed+scale (embedding) = [embed scale]"}},
		"a scalar on the left": {func(b *graph.Builder, x graph.ValueID) graph.ValueID {
			return basic.Mul(b, "scale", constant(b, "factor", 1), x)
		}, []string{"embed+scale (embedding) = [embed scale]"}},
		"a row": {func(b *graph.Builder, x graph.ValueID) graph.ValueID {
			return basic.Mul(b, "scale", x, constant(b, "factor", 32))
		}, nil},
		"itself": {func(b *graph.Builder, x graph.ValueID) graph.ValueID {
			return basic.Mul(b, "scale", x, x)
		}, nil},
		"another operator reads the embedding": {func(b *graph.Builder, x graph.ValueID) graph.ValueID {
			return basic.Add(b, "add", basic.Mul(b, "scale", x, constant(b, "factor", 1)), x, 1)
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			fused, _ := fusedAndNot(t, fuseScaled, func(b *graph.Builder) {
				ids := b.Input("ids", graph.I32, []int{1}, []int{9})
				b.Output(c.build(b, Embedding(b, "embed", noiseMatrix("embed.w", 50, 32, weight.F32), ids)))
			}, gpu.DefaultLimits())
			if got := partsOf(fused); !slices.Equal(got, c.want) {
				t.Errorf("fused %v, want %v", got, c.want)
			}
		})
	}
}

// scaledGraph draws an embedding with a scale, in one weight format.
func scaledGraph(t *rapid.T) func(b *graph.Builder) {
	f := drawFormat(t)
	return func(b *graph.Builder) {
		ids := b.Input("ids", graph.I32, []int{1}, []int{9})
		x := Embedding(b, "embed", noiseMatrix("embed.w", 50, 256, f), ids)
		b.Output(basic.Mul(b, "scale", x, constant(b, "factor", 1)))
	}
}

func TestAScaledEmbeddingKeepsWhatAGraphComputes(t *testing.T) {
	dev, points := gputest.Open(t), []step{{"ids": {9}}, {"ids": {1}}, {"ids": {4}}}
	for seed := range few(12) {
		build := rapid.Custom(scaledGraph).Example(seed)
		if referencesAgree(t, fuseScaled, build, points) != 1 {
			t.Fatal("nothing was fused")
		}
		kernelsAgree(t, dev, fuseScaled, build, points)
	}
}
