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

// headNorms builds a graph that normalizes q and k and then joins them. Each has its own width, eps and
// number of heads.
func headNorms(widths [2]int, eps [2]float32, heads [2]int) func(b *graph.Builder) {
	return func(b *graph.Builder) {
		norm := func(i int, name string) graph.ValueID {
			n := widths[i]
			x := b.Input(name, graph.F32, []int{1, 1, heads[i], n}, []int{1, 40, heads[i], n})
			return RMSNorm(b, name+"_norm", basic.Sigmoid(b, name+"_act", x), constant(b, name+".w", n),
				eps[i])
		}
		q := norm(0, "q")
		k := norm(1, "k")
		b.Output(basic.Sigmoid(b, "end", basic.Cat(b, "join", 2, q, k)))
	}
}

func TestNormsOfQAndKBecomeOneDispatch(t *testing.T) {
	one := [2]float32{1e-5, 1e-5}
	for name, c := range map[string]struct {
		build func(b *graph.Builder)
		fused bool
	}{
		"same width and epsilon": {headNorms([2]int{16, 16}, one, [2]int{4, 2}), true},
		"different epsilons":     {headNorms([2]int{16, 16}, [2]float32{1e-5, 1e-6}, [2]int{4, 2}), false},
		"one norm reads the other": {func(b *graph.Builder) {
			x := b.Input("x", graph.F32, []int{1, 16}, []int{9, 16})
			y := RMSNorm(b, "first", x, constant(b, "first.w", 16), 1e-5)
			b.Output(basic.Mul(b, "mul", y, RMSNorm(b, "second", y, constant(b, "second.w", 16), 1e-5)))
		}, false},
		"no common reader": {func(b *graph.Builder) {
			x := b.Input("x", graph.F32, []int{1, 16}, []int{9, 16})
			b.Output(basic.Sigmoid(b, "a", RMSNorm(b, "first", x, constant(b, "first.w", 16), 1e-5)))
			b.Output(basic.Sigmoid(b, "b", RMSNorm(b, "second", x, constant(b, "second.w", 16), 1e-5)))
		}, false},
		"different widths": {func(b *graph.Builder) {
			of := func(name string, n int) graph.ValueID {
				x := b.Input(name, graph.F32, []int{1, n}, []int{9, n})
				return RMSNorm(b, name+"_norm", x, constant(b, name+".w", n), 1e-5)
			}
			b.Output(basic.Cat(b, "join", 1, of("q", 16), of("k", 32)))
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			fused, plain := fusedAndNot(t, fuseQKNorm, c.build, gpu.DefaultLimits())
			if !c.fused {
				if parts := partsOf(fused); parts != nil {
					t.Errorf("fused %v", parts)
				}
				return
			}
			want := []string{"q_norm+k_norm (rms_norm) = [q_norm k_norm]"}
			if parts := partsOf(fused); !slices.Equal(parts, want) {
				t.Errorf("fused %v, want %v", parts, want)
			}
			of := func(g *graph.Graph) (dispatches, levels int) {
				return g.NumDispatches(), len(liveOf(t, g, graph.LiveOptions{}).Levels())
			}
			dispatches, levels := of(plain)
			if d, l := of(fused); d != dispatches-1 || l != levels-1 {
				t.Errorf("%d dispatches in %d levels; as two norms %d in %d", d, l, dispatches, levels)
			}
		})
	}
}

// headNormSteps returns live points of a headNorms graph.
func headNormSteps(width int, heads [2]int) (steps []step) {
	for _, n := range []int{40, 1, 7} {
		steps = append(steps, step{"q": {1, n, heads[0], width}, "k": {1, n, heads[1], width}})
	}
	return steps
}

func sampleHeadNorms(t *rapid.T) *trial {
	width := rapid.SampledFrom([]int{1, 6, 16, 48, 260}).Draw(t, "width")
	heads := [2]int{rapid.IntRange(1, 5).Draw(t, "heads"), rapid.IntRange(1, 3).Draw(t, "kv heads")}
	build := headNorms([2]int{width, width}, [2]float32{1e-5, 1e-5}, heads)
	return &trial{build: build, steps: headNormSteps(width, heads)}
}

func TestMergingNormsKeepsResults(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := sampleHeadNorms(t)
		if n := referencesAgree(t, fuseQKNorm, c.build, c.steps); n != 1 {
			t.Fatalf("fused in %d places, want 1", n)
		}
	})
}

func TestMergedNormsOnTheGPU(t *testing.T) {
	dev := gputest.Open(t)
	for seed := range few(8) {
		c := rapid.Custom(sampleHeadNorms).Example(seed)
		kernelsAgree(t, dev, fuseQKNorm, c.build, c.steps)
	}
}
