package ops

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gpuscope/engine"
	"gpuscope/engine/gpu"
)

// attention is the geometry of an sdpa_with_kv_cache.
type attention struct {
	heads, kvHeads, dim, cache, tokens int
	half                               bool
}

func (a attention) trial() *trial {
	c := &trial{
		name: fmt.Sprintf("%d/%d heads of %d, cache %d, half %v", a.heads, a.kvHeads, a.dim, a.cache, a.half),
		build: func(b *engine.Builder) {
			t := engine.F32
			if a.half {
				t = engine.F16
			}
			q := b.Input("q", engine.F32, []int{1, 1, a.heads, a.dim}, []int{1, a.tokens, a.heads, a.dim})
			k := b.Input("k", engine.F32, []int{1, 1, a.kvHeads, a.dim}, []int{1, a.tokens, a.kvHeads, a.dim})
			v := b.Input("v", engine.F32, []int{1, 1, a.kvHeads, a.dim}, []int{1, a.tokens, a.kvHeads, a.dim})
			ck := b.State("cache k", t, []int{1, a.cache, a.kvHeads, a.dim})
			cv := b.State("cache v", t, []int{1, a.cache, a.kvHeads, a.dim})
			position := b.SymInt("position", 0, int64(a.cache-1), 0)
			b.Output(SDPA(b, "sdpa", q, k, v, ck, cv, Sym(position), 0))
		},
		abs: 1e-4, rel: 1e-3,
	}
	return c
}

func (a attention) step(tokens, position int) step {
	return step{"q": {1, tokens, a.heads, a.dim}, "k": {1, tokens, a.kvHeads, a.dim}, "v": {1, tokens, a.kvHeads, a.dim}, "position": {position}}
}

// replay is steps of these lengths one after the other.
func (a attention) replay(lengths ...int) []step {
	var list []step
	position := 0
	for _, n := range lengths {
		list = append(list, a.step(n, position))
		position += n
	}
	return list
}

func sampleSDPA(t *rapid.T) *trial {
	a := attention{kvHeads: rapid.IntRange(1, 3).Draw(t, "kv heads"), dim: 4 * draw(t, "dim/4", 1, 34), half: rapid.Bool().Draw(t, "half")}
	a.heads = a.kvHeads * rapid.IntRange(1, 4).Draw(t, "group")
	a.cache = draw(t, "cache", 1, 200)
	a.tokens = draw(t, "tokens", 1, min(a.cache, 70))
	c := a.trial()
	c.steps = drawSteps(t, func(int) step {
		n := draw(t, "live tokens", 1, a.tokens)
		return a.step(n, draw(t, "position", 0, a.cache-n))
	})
	return c
}

func TestSDPA(t *testing.T) {
	var trials []*trial
	for _, test := range []struct {
		attention
		lengths []int
	}{
		{attention{heads: 6, kvHeads: 2, dim: 8, cache: 16, tokens: 4}, []int{4, 2, 1}},
		{attention{heads: 4, kvHeads: 4, dim: 16, cache: 8, tokens: 3}, []int{3, 1, 1}},
		{attention{heads: 8, kvHeads: 4, dim: 4, cache: 16, tokens: 5}, []int{5, 5, 1}},
		{attention{heads: 6, kvHeads: 2, dim: 64, cache: 30, tokens: 5}, []int{3, 1, 1, 5, 1, 1, 2}},
		{attention{heads: 4, kvHeads: 2, dim: 64, cache: 200, tokens: 111}, []int{111, 1, 1, 1, 57, 1, 1}},
		{attention{heads: 16, kvHeads: 8, dim: 128, cache: 64, tokens: 31}, []int{31, 17, 1}},
		{attention{heads: 2, kvHeads: 1, dim: 132, cache: 24, tokens: 17}, []int{17, 1, 1}},
		{attention{heads: 3, kvHeads: 1, dim: 64, cache: 8, tokens: 1}, []int{1, 1, 1}},
		{attention{heads: 6, kvHeads: 2, dim: 64, cache: 80, tokens: 70, half: true}, []int{70, 1, 5, 1}},
	} {
		c := test.trial()
		c.steps = test.replay(test.lengths...)
		trials = append(trials, c)
	}
	hold(t, trials...)
}

// A token late in a long cache: every split is in use, the last is short.
func TestSDPAOfOneTokenInALongCache(t *testing.T) {
	a := attention{heads: 2, kvHeads: 1, dim: 64, cache: 8300, tokens: 512}
	c := a.trial()
	c.steps = append(a.replay(512, 512), a.step(1, 1024), a.step(1, 8191), a.step(1, 8299))
	hold(t, c)
}

func TestSDPAWithLargeLogits(t *testing.T) {
	a := attention{heads: 4, kvHeads: 4, dim: 32, cache: 16, tokens: 4}
	c := a.trial()
	c.fill = map[string]func(int) float64{"q": func(i int) float64 { return 40 * noise("q", i) }}
	c.steps = a.replay(4, 1)
	hold(t, c)
}

func TestSDPARefusesWhatDoesNotBelongTogether(t *testing.T) {
	for want, a := range map[string]attention{
		"heads of 6, want a multiple of 4":        {heads: 2, kvHeads: 2, dim: 6, cache: 8, tokens: 2},
		"5 heads are no multiple of 2 kv heads":   {heads: 5, kvHeads: 2, dim: 8, cache: 8, tokens: 2},
		"up to 9 tokens a step, and a cache of 8": {heads: 2, kvHeads: 2, dim: 8, cache: 8, tokens: 9},
	} {
		b := engine.NewBuilder(gpu.DefaultLimits())
		a.trial().build(b)
		if _, err := b.Finish(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
