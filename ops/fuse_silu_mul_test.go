package ops

import (
	"slices"
	"testing"

	"gpuscope/engine"
	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/gputest"
)

// gated is the MLP of a Llama, with its activation as two operators.
func gated(b *engine.Builder, x engine.ValueID) engine.ValueID {
	branch := func(name string) engine.ValueID {
		return Linear(b, name, x, noiseMatrix(name+".w", 64, 32, Q8_0), engine.None)
	}
	return Mul(b, "mul", SiLU(b, "act", branch("gate")), branch("up"))
}

func TestASiLUAndAProductBecomeOneKernel(t *testing.T) {
	input := func(b *engine.Builder, name string, lowest, highest int) engine.ValueID {
		return b.Input(name, engine.F32, []int{lowest, 32}, []int{highest, 32})
	}
	matched := []string{"act+mul (silu_mul) = [act mul]"}
	for name, c := range map[string]struct {
		build func(b *engine.Builder) engine.ValueID
		want  []string
	}{
		"two branches of one tensor": {func(b *engine.Builder) engine.ValueID {
			return gated(b, RMSNorm(b, "norm", input(b, "x", 1, 9), constant(b, "norm.w", 32), 1e-5))
		}, matched},
		"the product the other way": {func(b *engine.Builder) engine.ValueID {
			x := input(b, "x", 1, 9)
			return Mul(b, "mul", x, SiLU(b, "act", Sigmoid(b, "s", x)))
		}, matched},
		"of tensors that are never one row": {func(b *engine.Builder) engine.ValueID {
			return Mul(b, "mul", SiLU(b, "act", input(b, "x", 2, 9)), input(b, "y", 2, 9))
		}, matched},
		"of tensors of one shape": {func(b *engine.Builder) engine.ValueID {
			return Mul(b, "mul", SiLU(b, "act", input(b, "x", 1, 1)), input(b, "y", 1, 1))
		}, matched},
		"of tensors of which one may be a row alone": {func(b *engine.Builder) engine.ValueID {
			return Mul(b, "mul", SiLU(b, "act", input(b, "x", 1, 9)), input(b, "y", 1, 9))
		}, nil},
		"with a row that is repeated": {func(b *engine.Builder) engine.ValueID {
			return Mul(b, "mul", SiLU(b, "act", input(b, "x", 9, 9)), input(b, "y", 1, 1))
		}, nil},
		"rows that a sum may have repeated": {func(b *engine.Builder) engine.ValueID {
			x, y := input(b, "x", 1, 9), input(b, "y", 1, 9)
			return Mul(b, "mul", SiLU(b, "act", x), Add(b, "add", x, y, 1))
		}, nil},
		"a silu with itself": {func(b *engine.Builder) engine.ValueID {
			y := SiLU(b, "act", input(b, "x", 1, 9))
			return Mul(b, "mul", y, y)
		}, nil},
		"another activation": {func(b *engine.Builder) engine.ValueID {
			x := input(b, "x", 1, 9)
			return Mul(b, "mul", GELU(b, "act", x, false), x)
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			build := func(b *engine.Builder) { b.Output(c.build(b)) }
			fused, _ := fusedAndNot(t, fuseSiLUMul, build, gpu.DefaultLimits())
			if got := partsOf(fused); !slices.Equal(got, c.want) {
				t.Errorf("fused %v, want %v", got, c.want)
			}
		})
	}
}

func TestSiLUMulKeepsWhatAGraphComputes(t *testing.T) {
	build := func(b *engine.Builder) {
		b.Scope("layers.0.", 0, "ffn")
		b.Output(gated(b, b.Input("x", engine.F32, []int{1, 32}, []int{40, 32})))
	}
	points := []step{{"x": {40, 32}}, {"x": {1, 32}}, {"x": {7, 32}}}
	if n := referencesAgree(t, fuseSiLUMul, build, points); n != 1 {
		t.Errorf("fused in %d places", n)
	}
	kernelsAgree(t, gputest.Open(t), fuseSiLUMul, build, points)
}
