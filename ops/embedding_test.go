package ops

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"gpuscope/engine"
)

// tableCase is a table of 4-bit weights and how many of its rows are asked for at most.
type tableCase struct {
	vocabulary, width, group, ids int
	highNibbles, halfScales       bool
	maxBinding                    uint64
}

func (c tableCase) trial() *trial {
	return &trial{
		name: fmt.Sprintf("vocabulary %d, width %d, group %d, high nibbles first %v, half scales %v",
			c.vocabulary, c.width, c.group, c.highNibbles, c.halfScales),
		abs: 1e-6, rel: 1e-6, maxBinding: c.maxBinding,
		build: func(b *engine.Builder) {
			table := q4Noise("table", c.vocabulary, c.width, c.group)
			table.HighNibbles, table.HalfScales = c.highNibbles, c.halfScales
			b.Output(EmbeddingQ4GSW(b, "y", table, b.Input("ids", engine.I32, []int{1, 1}, []int{1, c.ids})))
		},
		below: map[string]int{"ids": c.vocabulary},
	}
}

func sampleEmbeddingQ4GSW(t *rapid.T) *trial {
	group := rapid.SampledFrom([]int{8, 24, 32, 64, 128}).Draw(t, "group")
	width := group * rapid.IntRange(1, 4).Draw(t, "groups")
	table := tableCase{
		draw(t, "vocabulary", 1, 400), width, group, draw(t, "ids", 1, 70),
		rapid.Bool().Draw(t, "high"), rapid.Bool().Draw(t, "half"), 0,
	}
	if rapid.Bool().Draw(t, "split") {
		table.ids = min(table.ids, 16) // the result has to fit too
		table.maxBinding = uint64(128 * max(width/2, 4*width/group))
	}
	c := table.trial()
	c.steps = drawSteps(t, func(int) step { return step{"ids": {1, draw(t, "live ids", 1, table.ids)}} })
	return c
}

func TestEmbeddingQ4GSW(t *testing.T) {
	fixed := tableCase{vocabulary: 64, width: 64, group: 32, ids: 4}.trial()
	fixed.fill = map[string]func(int) float64{"ids": func(i int) float64 { return []float64{1, 5, 63, 0}[i] }}
	fixed.steps = []step{{"ids": {1, 4}}}
	wide := tableCase{
		vocabulary: 512, width: 2048, group: 64, ids: 16, highNibbles: true,
		halfScales: true,
	}.trial()
	wide.steps = []step{{"ids": {1, 16}}, {"ids": {1, 8}}, {"ids": {1, 1}}}
	split := tableCase{vocabulary: 300, width: 64, group: 32, ids: 16, maxBinding: 128 * 32}.trial()
	split.name = "a table in three parts"
	split.steps = []step{{"ids": {1, 16}}, {"ids": {1, 3}}}
	outside := tableCase{vocabulary: 7, width: 32, group: 32, ids: 5}.trial()
	outside.name = "ids outside of the table are brought into it"
	outside.fill = map[string]func(int) float64{"ids": func(i int) float64 {
		return []float64{
			-1, 7, 1 << 30,
			-1 << 31, 3,
		}[i]
	}}
	outside.steps = []step{{"ids": {1, 5}}}
	hold(t, fixed, wide, split, outside)
}

// A tied output head reads the table's memory.
func TestATiedHeadSharesTheTable(t *testing.T) {
	c := &trial{
		name: "logits",
		build: func(b *engine.Builder) {
			table := q4Noise("table", 100, 64, 32)
			x := EmbeddingQ4GSW(b, "embed", table, b.Input("ids", engine.I32, []int{1}, []int{5}))
			b.Output(LinearQ4GSW(b, "head", x, table, engine.None))
		},
		below: map[string]int{"ids": 100},
		steps: []step{{"ids": {5}}, {"ids": {1}}},
	}
	constants := 0
	for _, v := range finish(t, c).Describe().Values {
		if v.Role == engine.Constant.String() {
			constants++
		}
	}
	if constants != 2 {
		t.Errorf("%d constants, want the nibbles and the scales", constants)
	}
	hold(t, c)
}

func embeddingTrial(vocabulary, width, n int) *trial {
	return &trial{
		name: fmt.Sprintf("vocabulary %d, width %d", vocabulary, width), abs: 1e-9, rel: 1e-9,
		build: func(b *engine.Builder) {
			b.Output(Embedding(b, "y", constant(b, "table", vocabulary, width),
				b.Input("ids", engine.I32, []int{1, 1}, []int{2, n})))
		},
		below: map[string]int{"ids": vocabulary},
	}
}

func sampleEmbedding(t *rapid.T) *trial {
	n := draw(t, "ids", 1, 70)
	c := embeddingTrial(draw(t, "vocabulary", 1, 200), draw(t, "width", 1, 130), n)
	c.steps = drawSteps(t, func(int) step {
		return step{"ids": {rapid.IntRange(1, 2).Draw(t, "batch"), draw(t, "live ids", 1, n)}}
	})
	return c
}

func TestEmbedding(t *testing.T) {
	even, odd, outside := embeddingTrial(64, 64, 17), embeddingTrial(11, 33, 17), embeddingTrial(7, 4, 5)
	even.steps = []step{{"ids": {2, 17}}, {"ids": {1, 1}}, {"ids": {1, 16}}}
	odd.steps = even.steps
	outside.name = "ids outside of the table are brought into it"
	outside.fill = map[string]func(int) float64{"ids": func(i int) float64 {
		return []float64{
			-1, 7, 1 << 30,
			-1 << 31, 3,
		}[i]
	}}
	outside.steps = []step{{"ids": {1, 5}}}
	hold(t, even, odd, outside)
}
