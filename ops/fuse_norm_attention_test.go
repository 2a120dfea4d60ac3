package ops

import (
	"slices"
	"testing"

	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/gputest"
	"gpuscope/engine/graph"
)

func TestAttentionTakesTheNormsBeforeTheRotation(t *testing.T) {
	small := attention{qHeads: 4, kvHeads: 2, headDim: 16, tokens: 3, context: 20}
	sinks, shared := small, small
	sinks.sinks, shared.shared = 1, true
	few := gpu.DefaultLimits()
	for name, c := range map[string]struct {
		turnedAttention
		limits gpu.Limits
		Route  string
		want   []string // for one token
	}{
		"adjacent pairs":   {turnedAttention{attention: small, pairs: neighbourPairs}, large, "", []string{"rope+sdpa"}},
		"half-split pairs": {turnedAttention{attention: small, turned: 16}, large, "", []string{"rope+sdpa"}},
		"sinks":            {turnedAttention{attention: sinks, turned: 16}, large, "", []string{"rope+sdpa"}},
		"shared caches": {
			turnedAttention{attention: shared, turned: 16},
			large, "",
			[]string{"rope+sdpa", "other_rope+other_sdpa"},
		},
		"shared caches, few bindings": {
			turnedAttention{attention: shared, turned: 16},
			few, "",
			[]string{"q_norm+k_norm", "rope+sdpa", "other_rope+other_sdpa"},
		},
		"only the minimum number of bindings": {
			turnedAttention{attention: small, turned: 16}, few, "", []string{"q_norm+k_norm", "rope+sdpa"},
		},
		"another route forced": {
			turnedAttention{attention: small, turned: 16},
			large, "streaming",
			[]string{"q_norm+k_norm", "rope+sdpa", "rope+sdpa", "rope+sdpa"},
		},
		"different start position": {
			turnedAttention{attention: small, turned: 16, start: 2},
			large, "",
			[]string{"q_norm+k_norm", "rope", "rope", "sdpa"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.norms = true
			b := graph.NewBuilder(c.limits)
			if c.Route != "" {
				b.AskRoutes(map[string]string{"sdpa_with_kv_cache": c.Route})
			}
			b.Fuse(append(slices.Clip(standsOn[fuseNormAttention.Name]), fuseNormAttention)...)
			c.build(b)
			g, err := b.Finish()
			if err != nil {
				t.Fatal(err)
			}
			running := func(tokens int) (names []string) {
				c.live = [][2]int{{tokens, 0}}
				live := liveAt(t, g, (&trial{}).input(t, g, c.points()[0]))
				d := g.Describe()
				for _, id := range live.Active() {
					names = append(names, d.Ops[d.Dispatches[id].Op].Name)
				}
				return names
			}
			if got := running(1); !slices.Equal(got, c.want) {
				t.Errorf("one token runs %v, want %v", got, c.want)
			}
			if got := running(3); !slices.Contains(got, "q_norm+k_norm") {
				t.Errorf("three tokens run %v, want the norms among them", got)
			}
		})
	}
}

// large holds the limits of a large GPU.
var large = gpu.LimitSets[1].Limits

func TestAttentionWithNormsKeepsWhatAGraphComputes(t *testing.T) {
	dev := gputest.Open(t)
	for i, c := range partlyTurned {
		if testing.Short() && i%2 == 0 {
			continue
		}
		for _, c.pairs = range dealt(i/2, []string{neighbourPairs, halfPairs}) {
			c.norms = true
			c.live = [][2]int{{5, 0}, {1, 5}, {4, 6}, {1, 10}, {1, c.context - 1}, {2, c.context - 2}, {1, 0}}
			t.Run(c.String()+c.pairs, func(t *testing.T) {
				if n := referencesAgreeOn(t, large, fuseNormAttention, c.build, c.points()); n != 4 {
					t.Errorf("fused in %d places, want 4: 2 by the prerequisite rules, the norms and the attention", n)
				}
				near := 5e-5
				if c.half { // keys normalized by another kernel may round to other f16 values
					near = 0x1p-9
				}
				kernelsAgreeWithin(t, dev, fuseNormAttention, c.build, c.points(), near)
			})
		}
	}
}

// Attention that only reads the caches of another one normalizes and rotates q alone.
func TestAttentionOnSharedCachesKeepsWhatAGraphComputes(t *testing.T) {
	dev := gputest.Open(t)
	for _, pairs := range []string{neighbourPairs, halfPairs} {
		c := turnedAttention{
			attention: attention{
				qHeads: 4, kvHeads: 2, headDim: 16, tokens: 5, context: 500, window: 450, shared: true,
				live: [][2]int{{5, 0}, {1, 5}, {4, 6}, {1, 10}, {1, 499}, {2, 498}, {1, 0}},
			},
			pairs: pairs, turned: 16, norms: true,
		}
		// The norms and the attention of each, qk_norm once and rope_attention twice.
		if n := referencesAgreeOn(t, large, fuseNormAttention, c.build, c.points()); n != 7 {
			t.Errorf("fused in %d places, want 7", n)
		}
		kernelsAgreeWithin(t, dev, fuseNormAttention, c.build, c.points(), 5e-5)
	}
}

// If v is also the norm of k, attention reads the norm twice and rotates only one of the two.
func TestNormReadAsAValueIsNotDeferred(t *testing.T) {
	a := attention{qHeads: 4, kvHeads: 2, headDim: 16, tokens: 3, context: 40}
	build := func(b *graph.Builder) {
		q, k, _ := a.inputs(b)
		q = RMSNorm(b, "q_norm", q, constant(b, "q_norm.w", 16), 1e-5)
		k = RMSNorm(b, "k_norm", k, constant(b, "k_norm.w", 16), 1e-5)
		position := a.position(b)
		yq, yk := ApplyRotaryEmbHF(b, "rope", q, k, constant(b, "cos", 40, 16), constant(b, "sin", 40, 16),
			position)
		b.Output(a.attend(b, yq, yk, k, position))
	}
	g := fusedBy(t, build, large, Fusions...)
	liveAt(t, g, (&trial{}).input(t, g, a.step(1, 5)))
}
