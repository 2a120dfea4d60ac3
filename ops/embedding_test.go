package ops

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"gpuscope/engine"
)

// q4 is a matrix of 4-bit noise.
func q4(name string, rows, cols, group int) Q4Matrix {
	return Q4Matrix{
		Name: name, Rows: rows, Cols: cols, Group: group,
		Nibbles: func() ([]byte, error) {
			data := make([]byte, rows*cols/2)
			for i := range data {
				data[i] = byte(int((noise(name, i) + 2) * 64))
			}
			return data, nil
		},
		Scales: func() ([]float32, error) {
			list := make([]float32, rows*cols/group)
			for i := range list {
				list[i] = float32(0.01 + 0.005*noise(name+".scales", i))
			}
			return list, nil
		},
	}
}

func embeddingQ4GSWTrial(vocabulary, width, group, n int, high bool) *trial {
	return &trial{
		name: fmt.Sprintf("vocabulary %d, width %d, group %d, high nibbles first %v", vocabulary, width, group, high), abs: 1e-6, rel: 1e-6,
		build: func(b *engine.Builder) {
			table := q4("table", vocabulary, width, group)
			table.HighNibbles = high
			b.Output(EmbeddingQ4GSW(b, "y", table, b.Input("ids", engine.I32, []int{1, 1}, []int{1, n})))
		},
		below: map[string]int{"ids": vocabulary},
	}
}

func sampleEmbeddingQ4GSW(t *rapid.T) *trial {
	group := rapid.SampledFrom([]int{8, 24, 32, 64, 128}).Draw(t, "group")
	n := draw(t, "ids", 1, 70)
	c := embeddingQ4GSWTrial(draw(t, "vocabulary", 1, 200), group*rapid.IntRange(1, 4).Draw(t, "groups"), group, n, rapid.Bool().Draw(t, "high"))
	c.steps = drawSteps(t, func(int) step { return step{"ids": {1, draw(t, "live ids", 1, n)}} })
	return c
}

func TestEmbeddingQ4GSW(t *testing.T) {
	fixed := embeddingQ4GSWTrial(64, 64, 32, 4, false)
	fixed.fill = map[string]func(int) float64{"ids": func(i int) float64 { return []float64{1, 5, 63, 0}[i] }}
	fixed.steps = []step{{"ids": {1, 4}}}
	wide := embeddingQ4GSWTrial(512, 2048, 64, 16, true)
	wide.steps = []step{{"ids": {1, 16}}, {"ids": {1, 8}}, {"ids": {1, 1}}}
	outside := embeddingQ4GSWTrial(7, 32, 32, 5, false)
	outside.name = "ids outside of the table are brought into it"
	outside.fill = map[string]func(int) float64{"ids": func(i int) float64 { return []float64{-1, 7, 1 << 30, -1 << 31, 3}[i] }}
	outside.steps = []step{{"ids": {1, 5}}}
	hold(t, fixed, wide, outside)
}

func embeddingTrial(vocabulary, width, n int) *trial {
	return &trial{
		name: fmt.Sprintf("vocabulary %d, width %d", vocabulary, width), abs: 1e-9, rel: 1e-9,
		build: func(b *engine.Builder) {
			b.Output(Embedding(b, "y", constant(b, "table", vocabulary, width), b.Input("ids", engine.I32, []int{1, 1}, []int{2, n})))
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
	outside.fill = map[string]func(int) float64{"ids": func(i int) float64 { return []float64{-1, 7, 1 << 30, -1 << 31, 3}[i] }}
	outside.steps = []step{{"ids": {1, 5}}}
	hold(t, even, odd, outside)
}
