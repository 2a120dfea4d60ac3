package ops

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/gputest"
	"gpuscope/engine/graph"
	"gpuscope/ops/basic"
)

func TestNormComputesItsSum(t *testing.T) {
	for name, c := range map[string]struct {
		build func(b *graph.Builder, x, norm graph.ValueID) graph.ValueID
		want  []string
	}{
		"the norm on the right": {func(b *graph.Builder, x, norm graph.ValueID) graph.ValueID {
			return basic.Add(b, "add", x, norm, 1)
		}, []string{"norm+add (rms_norm) = [norm add]"}},
		"the norm on the left": {func(b *graph.Builder, x, norm graph.ValueID) graph.ValueID {
			return basic.Add(b, "add", norm, x, 1)
		}, []string{"norm+add (rms_norm) = [norm add]"}},
		"one sum behind another": {func(b *graph.Builder, x, norm graph.ValueID) graph.ValueID {
			return basic.Add(b, "again", basic.Add(b, "add", x, norm, 1), x, 1)
		}, []string{"norm+add (rms_norm) = [norm add]"}},
		"somebody else reads the norm": {func(b *graph.Builder, x, norm graph.ValueID) graph.ValueID {
			return basic.Mul(b, "mul", basic.Add(b, "add", x, norm, 1), norm)
		}, nil},
		"the norm with itself": {func(b *graph.Builder, x, norm graph.ValueID) graph.ValueID {
			return basic.Add(b, "add", norm, norm, 1)
		}, nil},
		"a sum with a factor": {func(b *graph.Builder, x, norm graph.ValueID) graph.ValueID {
			return basic.Add(b, "add", x, norm, 0.5)
		}, nil},
		"a row that is repeated": {func(b *graph.Builder, x, norm graph.ValueID) graph.ValueID {
			return basic.Add(b, "add", b.Input("r", graph.F32, []int{32}, []int{32}), norm, 1)
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			fused, _ := fusedAndNot(t, fuseNormAdd, func(b *graph.Builder) {
				x := b.Input("x", graph.F32, []int{1, 1, 32}, []int{1, 9, 32})
				b.Output(c.build(b, x, RMSNorm(b, "norm", x, constant(b, "norm.w", 32), 1e-5)))
			}, gpu.DefaultLimits())
			if got := partsOf(fused); !slices.Equal(got, c.want) {
				t.Errorf("made of several are %v, want %v", got, c.want)
			}
		})
	}
}

func TestFusingSumsIntoNormsKeepsResults(t *testing.T) {
	fusions := 0
	rapid.Check(t, func(t *rapid.T) {
		fusions += referencesAgree(t, fuseNormAdd, residualGraph(t), residualPoints)
	})
	if fusions == 0 {
		t.Error("nothing was ever fused")
	}
}

func TestSumsFusedIntoNormsOnTheGPU(t *testing.T) {
	dev := gputest.Open(t)
	for seed := range few(20) {
		kernelsAgree(t, dev, fuseNormAdd, rapid.Custom(residualGraph).Example(seed), residualPoints)
	}
}
