package ops

import (
	"slices"
	"testing"

	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/gputest"
	"gpuscope/engine/graph"
	"gpuscope/ops/basic"
	"gpuscope/ops/kind"
)

func TestSiLUIsRecognized(t *testing.T) {
	dev, points := gputest.Open(t), []step{{"x": {1, 9, 32}}, {"x": {1, 1, 32}}}
	fused := []string{"sigmoid+mul (silu) = [sigmoid mul]"}
	for name, c := range map[string]struct {
		build func(b *graph.Builder, x, y graph.ValueID) graph.ValueID
		want  []string
	}{
		"x * sigmoid(x)": {func(b *graph.Builder, x, y graph.ValueID) graph.ValueID {
			return basic.Mul(b, "mul", x, basic.Sigmoid(b, "sigmoid", x))
		}, fused},
		"sigmoid(x) * x": {func(b *graph.Builder, x, y graph.ValueID) graph.ValueID {
			return basic.Mul(b, "mul", basic.Sigmoid(b, "sigmoid", x), x)
		}, fused},
		"y * sigmoid(x)": {func(b *graph.Builder, x, y graph.ValueID) graph.ValueID {
			return basic.Mul(b, "mul", y, basic.Sigmoid(b, "sigmoid", x))
		}, nil},
		"the sigmoid has another reader": {func(b *graph.Builder, x, y graph.ValueID) graph.ValueID {
			s := basic.Sigmoid(b, "sigmoid", x)
			return basic.Add(b, "add", basic.Mul(b, "mul", x, s), s, 1)
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			build := func(b *graph.Builder) {
				x := b.Input("x", graph.F32, []int{1, 1, 32}, []int{1, 9, 32})
				b.Output(c.build(b, x, KindOf("exp").BuildOne(b, "exp", kind.Args{"x": x})))
			}
			g, plain := fusedAndNot(t, fuseSiLU, build, gpu.DefaultLimits())
			if got := partsOf(g); !slices.Equal(got, c.want) {
				t.Errorf("fused %v, want %v", got, c.want)
			}
			referencesOf(t, g, plain, points, 1e-12)
			kernelsAgree(t, dev, fuseSiLU, build, points)
		})
	}
}
