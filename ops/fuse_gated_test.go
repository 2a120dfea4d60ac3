package ops

import (
	"slices"
	"testing"

	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/gputest"
	"gpuscope/engine/graph"
	"gpuscope/ops/basic"
	"gpuscope/ops/kind"
	"gpuscope/ops/weight"
)

// activate adds the activation of a row as a separate operator.
func activate(b *graph.Builder, r *basic.GatedRow, x graph.ValueID) graph.ValueID {
	args := kind.Args{"x": x}
	if r.Act.When != "" {
		args[r.Act.When] = true
	}
	return New(b, r.UnaryOp, "act", args)[0]
}

// gatedMLP builds a gated MLP with the activation and the multiplication as two operators.
func gatedMLP(b *graph.Builder, r *basic.GatedRow, x graph.ValueID) graph.ValueID {
	branch := func(name string) graph.ValueID {
		return Linear(b, name, x, noiseMatrix(name+".w", 64, 32, weight.Q8_0), graph.None)
	}
	return basic.Mul(b, "mul", activate(b, r, branch("gate")), branch("up"))
}

func TestAnActivationAndAProductBecomeOneKernel(t *testing.T) {
	input := func(b *graph.Builder, name string, lowest, highest int) graph.ValueID {
		return b.Input(name, graph.F32, []int{lowest, 32}, []int{highest, 32})
	}
	for name, c := range map[string]struct {
		build func(b *graph.Builder, r *basic.GatedRow) graph.ValueID
		fused bool
	}{
		"two branches of one tensor": {func(b *graph.Builder, r *basic.GatedRow) graph.ValueID {
			return gatedMLP(b, r, RMSNorm(b, "norm", input(b, "x", 1, 9), constant(b, "norm.w", 32), 1e-5))
		}, true},
		"the product with swapped operands": {func(b *graph.Builder, r *basic.GatedRow) graph.ValueID {
			x := input(b, "x", 1, 9)
			return basic.Mul(b, "mul", x, activate(b, r, basic.Sigmoid(b, "s", x)))
		}, true},
		"tensors that never have one row": {func(b *graph.Builder, r *basic.GatedRow) graph.ValueID {
			return basic.Mul(b, "mul", activate(b, r, input(b, "x", 2, 9)), input(b, "y", 2, 9))
		}, true},
		"tensors of one shape": {func(b *graph.Builder, r *basic.GatedRow) graph.ValueID {
			return basic.Mul(b, "mul", activate(b, r, input(b, "x", 1, 1)), input(b, "y", 1, 1))
		}, true},
		"tensors of which one may have one row": {func(b *graph.Builder, r *basic.GatedRow) graph.ValueID {
			return basic.Mul(b, "mul", activate(b, r, input(b, "x", 1, 9)), input(b, "y", 1, 9))
		}, false},
		"with a repeated row": {func(b *graph.Builder, r *basic.GatedRow) graph.ValueID {
			return basic.Mul(b, "mul", activate(b, r, input(b, "x", 9, 9)), input(b, "y", 1, 1))
		}, false},
		"rows that a sum may repeat": {func(b *graph.Builder, r *basic.GatedRow) graph.ValueID {
			x, y := input(b, "x", 1, 9), input(b, "y", 1, 9)
			return basic.Mul(b, "mul", activate(b, r, x), basic.Add(b, "add", x, y, 1))
		}, false},
		"an activation times itself": {func(b *graph.Builder, r *basic.GatedRow) graph.ValueID {
			y := activate(b, r, input(b, "x", 1, 9))
			return basic.Mul(b, "mul", y, y)
		}, false},
		"another activation": {func(b *graph.Builder, _ *basic.GatedRow) graph.ValueID {
			x := input(b, "x", 1, 9)
			return basic.Mul(b, "mul", basic.GELU(b, "act", x, false), x)
		}, false},
	} {
		for i := range basic.Gates {
			r := &basic.Gates[i]
			if r.UnaryOp == "" {
				continue
			}
			t.Run(r.Kind+"/"+name, func(t *testing.T) {
				build := func(b *graph.Builder) { b.Output(c.build(b, r)) }
				fused, _ := fusedAndNot(t, fusionOf(r), build, gpu.DefaultLimits())
				var want []string
				if c.fused {
					want = []string{"act+mul (" + r.Kind + ") = [act mul]"}
				}
				if got := partsOf(fused); !slices.Equal(got, want) {
					t.Errorf("fused %v, want %v", got, want)
				}
			})
		}
	}
}

func TestGatedRulesKeepWhatAGraphComputes(t *testing.T) {
	dev := gputest.Open(t)
	for i := range basic.Gates {
		r := &basic.Gates[i]
		if r.UnaryOp == "" {
			continue
		}
		build := func(b *graph.Builder) {
			b.Scope("layers.0.", 0, "ffn")
			b.Output(gatedMLP(b, r, b.Input("x", graph.F32, []int{1, 32}, []int{40, 32})))
		}
		points := []step{{"x": {40, 32}}, {"x": {1, 32}}, {"x": {7, 32}}}
		if n := referencesAgree(t, fusionOf(r), build, points); n != 1 {
			t.Errorf("%s: fused in %d places", r.Kind, n)
		}
		kernelsAgree(t, dev, fusionOf(r), build, points)
	}
}
