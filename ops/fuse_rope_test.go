package ops

import (
	"testing"

	"pgregory.net/rapid"

	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/gputest"
	"gpuscope/engine/graph"
	"gpuscope/ops/basic"
)

// rotations draws graphs that rotate q and k.
var rotations = map[string]func(*rapid.T) *trial{"neighbours": sampleRotary, "halves": sampleRotaryHF}

func TestBothRotationsAreOneDispatch(t *testing.T) {
	build := func(b *graph.Builder) {
		in := func(name string, dims ...int) graph.ValueID { return b.Input(name, graph.F32, dims, dims) }
		act := func(name string, heads int) graph.ValueID {
			return basic.Sigmoid(b, name, in(name+".in", 1, 1, heads, 8))
		}
		yq, yk := ApplyRotaryEmb(b, "rope", act("q", 4), act("k", 2), in("cos", 1, 4), in("sin", 1, 4))
		b.Output(basic.Sigmoid(b, "end.q", yq))
		b.Output(basic.Sigmoid(b, "end.k", yk))
	}
	fused, plain := fusedAndNot(t, fuseRope, build, gpu.DefaultLimits())
	of := func(g *graph.Graph) (dispatches, levels int) {
		return g.NumDispatches(), len(liveOf(t, g, graph.LiveOptions{}).Levels())
	}
	dispatches, levels := of(plain)
	if d, l := of(fused); d != dispatches-1 || l != levels-1 {
		t.Errorf("%d dispatches in %d levels; as two separate rotations %d in %d", d, l, dispatches, levels)
	}
	if parts := partsOf(fused); parts != nil {
		t.Errorf("fused from %v, want one operator as before", parts)
	}
	if ops := fused.NumOps(); ops != plain.NumOps() {
		t.Errorf("%d operators, want %d", ops, plain.NumOps())
	}
}

func TestMergingRotationsKeepsResults(t *testing.T) {
	for name, sample := range rotations {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				c := sample(t)
				if n := referencesAgree(t, fuseRope, c.build, c.steps); n != 1 {
					t.Fatalf("fused in %d places, want 1", n)
				}
			})
		})
	}
}

func TestMergedRotationsOnTheGPU(t *testing.T) {
	dev := gputest.Open(t)
	for name, sample := range rotations {
		t.Run(name, func(t *testing.T) {
			for seed := range few(6) {
				c := rapid.Custom(sample).Example(seed)
				kernelsAgree(t, dev, fuseRope, c.build, c.steps)
			}
		})
	}
}
