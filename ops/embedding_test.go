package ops

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"gpuscope/engine/graph"
	"gpuscope/ops/weight"
	"gpuscope/trace"
)

// tableCase describes an embedding table and the maximum number of ids.
type tableCase struct {
	vocabulary, width, ids int
	format                 weight.Format
	maxBinding             uint64
}

func (c tableCase) trial() *trial {
	return &trial{
		name: fmt.Sprintf("vocabulary %d, width %d, %s, group %d", c.vocabulary, c.width,
			c.format.KindName("embedding"), c.format.Group),
		abs: 1e-6, rel: 1e-6, maxBinding: c.maxBinding,
		build: func(b *graph.Builder) {
			table := noiseMatrix("table", c.vocabulary, c.width, c.format)
			b.Output(Embedding(b, "y", table, b.Input("ids", graph.I32, []int{1, 1}, []int{2, c.ids})))
		},
		below: map[string]int{"ids": c.vocabulary},
	}
}

// split lowers the binding limit so that the table is split into parts of the fewest rows. It limits the ids
// so that the result still fits.
func (c *tableCase) split() {
	c.maxBinding = partBytes(c.format, c.width)
	c.ids = min(c.ids, 8, int(c.maxBinding)/(2*4*c.width))
}

func sampleEmbedding(t *rapid.T, kind string) *trial {
	table := tableCase{vocabulary: draw(t, "vocabulary", 1, 400), ids: draw(t, "ids", 1, 70)}
	options := weight.Q4Options{HighNibbles: rapid.Bool().Draw(t, "high"), HalfScales: rapid.Bool().Draw(t, "half")}
	switch group := rapid.SampledFrom([]int{8, 24, 32, 64, 128}).Draw(t, "group"); kind {
	case "embedding_q4gsw":
		table.format, table.width = weight.Q4GSW(group, options), group*rapid.IntRange(1, 4).Draw(t, "groups")
	case "embedding_qcs4w":
		table.format, table.width = weight.QCS4W(group, options), group
	default:
		table.format = linearCase{kind: kind}.format()
		block := table.format.Pieces[0].Cols
		table.width = block * draw(t, "blocks", 1, max(130/block, 4))
	}
	if rapid.Bool().Draw(t, "split") {
		table.split()
	}
	c := table.trial()
	c.steps = drawSteps(t, func(int) step {
		return step{"ids": {rapid.IntRange(1, 2).Draw(t, "batch"), draw(t, "live ids", 1, table.ids)}}
	})
	return c
}

func TestEmbedding(t *testing.T) {
	fixed := tableCase{vocabulary: 64, width: 64, ids: 4, format: weight.Q4GSW(32,
		weight.Q4Options{})}.trial()
	fixed.name = "ids as they come"
	fixed.fill = map[string]func(int) float64{
		"ids": func(i int) float64 { return []float64{1, 5, 63, 0}[i] },
	}
	fixed.steps = []step{{"ids": {1, 4}}}
	wide := tableCase{
		vocabulary: 512, width: 2048, ids: 16,
		format: weight.Q4GSW(64, weight.Q4Options{HighNibbles: true, HalfScales: true}),
	}.trial()
	wide.steps = []step{{"ids": {1, 16}}, {"ids": {1, 8}}, {"ids": {1, 1}}}
	trials := []*trial{fixed, wide}
	for _, f := range weight.Formats {
		width := max(64, f.Pieces[0].Cols)
		even := tableCase{vocabulary: 64, width: width, ids: 17, format: f}.trial()
		even.steps = []step{{"ids": {2, 17}}, {"ids": {1, 1}}, {"ids": {1, 16}}}
		parts := tableCase{vocabulary: 300, width: width, ids: 8, format: f}
		parts.split()
		split := parts.trial()
		split.name += ", in parts"
		split.steps = []step{{"ids": {1, parts.ids}}, {"ids": {1, min(3, parts.ids)}}}
		outside := tableCase{vocabulary: 7, width: width, ids: 5, format: f}.trial()
		outside.name += ", ids outside of the table are brought into it"
		outside.fill = map[string]func(int) float64{"ids": func(i int) float64 {
			return []float64{-1, 7, 1 << 30, -1 << 31, 3}[i]
		}}
		outside.steps = []step{{"ids": {1, 5}}}
		trials = append(trials, even, split, outside)
	}
	for _, width := range []int{1, 33, 39} {
		odd := tableCase{vocabulary: 11, width: width, ids: 17, format: weight.F32}.trial()
		odd.steps = []step{{"ids": {2, 17}}, {"ids": {1, 1}}, {"ids": {1, 16}}}
		trials = append(trials, odd)
	}
	hold(t, trials...)
}

// A tied output head shares the memory of the embedding table.
func TestATiedHeadSharesTheTable(t *testing.T) {
	c := &trial{
		name: "logits",
		build: func(b *graph.Builder) {
			table := q4Noise("table", 100, 64, 32)
			x := Embedding(b, "embed", table, b.Input("ids", graph.I32, []int{1}, []int{5}))
			b.Output(Linear(b, "head", x, table, graph.None))
		},
		below: map[string]int{"ids": 100},
		steps: []step{{"ids": {5}}, {"ids": {1}}},
	}
	constants := 0
	for _, v := range finish(t, c).Describe().Values {
		if v.Role == trace.RoleConstant {
			constants++
		}
	}
	if constants != 2 {
		t.Errorf("%d constants, want the nibbles and the scales", constants)
	}
	hold(t, c)
}
