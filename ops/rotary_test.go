package ops

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/ops/basic"
	"gpuscope/ops/kind"
	"gpuscope/trace"
)

// rotaryTrial rotates q and k. q has at most queries tokens: s, or 1 for the last token only.
func rotaryTrial(queries, s, heads, kvHeads, d int) *trial {
	return &trial{
		name: fmt.Sprintf("S %d, %d in q, heads %d and %d of %d", s, queries, heads, kvHeads, d),
		abs:  1e-5, rel: 1e-5,
		build: func(b *graph.Builder) {
			q := b.Input("q", graph.F32, []int{1, 1, heads, d}, []int{1, queries, heads, d})
			k := b.Input("k", graph.F32, []int{1, 1, kvHeads, d}, []int{1, s, kvHeads, d})
			cos, sin := b.Input("cos", graph.F32, []int{1, d / 2}, []int{s, d / 2}),
				b.Input("sin", graph.F32, []int{1, d / 2}, []int{s, d / 2})
			yq, yk := ApplyRotaryEmb(b, "rope", q, k, cos, sin)
			b.Output(yq)
			b.Output(yk)
		},
	}
}

func rotaryStep(queries, s, heads, kvHeads, d int) step {
	q := []int{1, min(queries, s), heads, d}
	return step{"q": q, "k": {1, s, kvHeads, d}, "cos": {s, d / 2}, "sin": {s, d / 2}}
}

// drawQueries draws s, or 1 for the last token only.
func drawQueries(t *rapid.T, s int) int {
	if rapid.Bool().Draw(t, "of the last") {
		return 1
	}
	return s
}

func sampleRotary(t *rapid.T) *trial {
	s, heads, kvHeads, d := draw(t, "S", 1, 70), draw(t, "heads", 1, 9), draw(t, "kv heads", 1, 5),
		2*draw(t, "D/2", 1, 40)
	queries := drawQueries(t, s)
	c := rotaryTrial(queries, s, heads, kvHeads, d)
	c.steps = drawSteps(t, func(int) step {
		return rotaryStep(queries, draw(t, "live S", 1, s), heads, kvHeads, d)
	})
	return c
}

func TestApplyRotaryEmb(t *testing.T) {
	var trials []*trial
	for _, dims := range [][4]int{{5, 8, 2, 64}, {1, 32, 8, 64}, {16, 8, 8, 8}, {3, 3, 1, 6}, {17, 2, 2, 2}} {
		for _, queries := range []int{dims[0], 1} {
			c := rotaryTrial(queries, dims[0], dims[1], dims[2], dims[3])
			for _, s := range []int{dims[0], 1, (dims[0] + 1) / 2} {
				c.steps = append(c.steps, rotaryStep(queries, s, dims[1], dims[2], dims[3]))
			}
			trials = append(trials, c)
		}
	}
	hold(t, trials...)
}

// A dispatch reads only the table rows of the positions that it rotates.
func TestLastQPositionReadsOneTableRow(t *testing.T) {
	const heads, kvHeads, d = 8, 2, 16
	for _, queries := range []int{7, 1} {
		c := rotaryTrial(queries, 7, heads, kvHeads, d)
		g := fusedBy(t, c.build, gpu.DefaultLimits())
		live := liveAt(t, g, c.input(t, g, rotaryStep(queries, 7, heads, kvHeads, d)))
		for slot, side := range [][2]int{{queries, heads}, {7, kvHeads}} {
			l, _ := live.Launch(trace.DispatchID(slot))
			if want := int64(8*side[0]*side[1]*d + 8*side[0]*d/2); l.Bytes != want {
				t.Errorf("%d positions of q, slot %d: %d bytes, want %d", queries, slot, l.Bytes, want)
			}
		}
	}
}

// rotaryHFTrial rotates the first elements of heads that are d wide.
func rotaryHFTrial(queries, s, heads, kvHeads, d, turned, positions int) *trial {
	return &trial{
		name: fmt.Sprintf("S %d, %d in q, heads %d and %d of %d, %d turned, positions %d", s, queries, heads,
			kvHeads, d, turned, positions),
		abs: 1e-5, rel: 1e-5,
		build: func(b *graph.Builder) {
			q := b.Input("q", graph.F32, []int{1, 1, heads, d}, []int{1, queries, heads, d})
			k := b.Input("k", graph.F32, []int{1, 1, kvHeads, d}, []int{1, s, kvHeads, d})
			pos := b.SymInt("pos", 0, int64(positions-1), 0)
			yq, yk := ApplyRotaryEmbHF(b, "rope", q, k, constant(b, "cos", positions, turned),
				constant(b, "sin", positions, turned), kind.Sym(pos))
			b.Output(yq)
			b.Output(yk)
		},
	}
}

func sampleRotaryHF(t *rapid.T) *trial {
	s, heads, kvHeads, d := draw(t, "S", 1, 70), draw(t, "heads", 1, 9), draw(t, "kv heads", 1, 5),
		2*draw(t, "D/2", 1, 40)
	positions := s + draw(t, "more positions", 0, 50)
	turned := d
	if rapid.Bool().Draw(t, "a part") {
		turned = 2 * draw(t, "R/2", 1, d/2)
	}
	queries := drawQueries(t, s)
	c := rotaryHFTrial(queries, s, heads, kvHeads, d, turned, positions)
	c.steps = drawSteps(t, func(int) step {
		n := draw(t, "live S", 1, s)
		q, pos := []int{1, min(queries, n), heads, d}, []int{draw(t, "pos", 0, positions-n)}
		return step{"q": q, "k": {1, n, kvHeads, d}, "pos": pos}
	})
	return c
}

func TestApplyRotaryEmbHFFollowsThePosition(t *testing.T) {
	var trials []*trial
	for _, turned := range []int{64, 48, 20} {
		for _, queries := range []int{16, 1} {
			c := rotaryHFTrial(queries, 16, 8, 2, 64, turned, 32)
			for _, at := range [][2]int{{5, 0}, {16, 0}, {5, 7}, {1, 15}, {1, 16}, {1, 31}, {16, 16}} {
				q := []int{1, min(queries, at[0]), 8, 64}
				c.steps = append(c.steps, step{"q": q, "k": {1, at[0], 2, 64}, "pos": {at[1]}})
			}
			trials = append(trials, c)
		}
		odd := rotaryHFTrial(3, 3, 16, 8, 6, 2+turned%6, 9)
		odd.steps = []step{
			{"q": {1, 3, 16, 6}, "k": {1, 3, 8, 6}, "pos": {6}},
			{"q": {1, 1, 16, 6}, "k": {1, 1, 8, 6}, "pos": {8}},
		}
		trials = append(trials, odd)
	}
	hold(t, trials...)
}

func rotaryInterleavedTrial(batch, n, c int) *trial {
	return &trial{
		name: fmt.Sprintf("%dx%dx%d", batch, n, c), abs: 1e-5, rel: 1e-5,
		build: func(b *graph.Builder) {
			x := b.Input("x", graph.F32, []int{1, 1, c}, []int{batch, n, c})
			b.Output(basic.ApplyRotaryEmbInterleaved(b, "rope", x,
				b.Input("freqs", graph.F32, []int{1, c}, []int{n, c})))
		},
	}
}

func sampleRotaryInterleaved(t *rapid.T) *trial {
	batch, n, c := draw(t, "batch", 1, 5), draw(t, "N", 1, 70), 2*draw(t, "C/2", 1, 40)
	tr := rotaryInterleavedTrial(batch, n, c)
	tr.steps = drawSteps(t, func(int) step {
		m := draw(t, "live N", 1, n)
		return step{"x": {draw(t, "live batch", 1, batch), m, c}, "freqs": {m, c}}
	})
	return tr
}

func TestApplyRotaryEmbInterleaved(t *testing.T) {
	var trials []*trial
	for _, d := range [][3]int{{1, 4, 8}, {2, 3, 8}, {1, 5, 4}, {1, 2, 16}, {3, 65, 2}} {
		c := rotaryInterleavedTrial(d[0], d[1], d[2])
		c.steps = []step{{"x": d[:], "freqs": d[1:]}, {"x": {1, 1, d[2]}, "freqs": {1, d[2]}}}
		trials = append(trials, c)
	}
	hold(t, trials...)
}
