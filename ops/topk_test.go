package ops

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"gpuscope/engine/graph"
	"gpuscope/ops/basic"
)

func topKTrial(width, rows, k int) *trial {
	return &trial{
		name: fmt.Sprintf("%d of %d rows of %d", k, rows, width), abs: 1e-6, rel: 1e-5,
		build: func(b *graph.Builder) {
			x := b.Input("x", graph.F32, []int{1, width}, []int{rows, width})
			values, ids, stats := basic.TopK(b, "y", x, k)
			b.Output(values)
			b.Output(ids)
			b.Output(stats)
		},
		fill: map[string]func(int) float64{"x": func(i int) float64 { return 8 * noise("x", i) }},
	}
}

func sampleTopK(t *rapid.T) *trial {
	rows, width := draw(t, "rows", 1, 20), draw(t, "width", 1, 3000)
	c := topKTrial(width, rows, draw(t, "k", 1, min(width, basic.MaxTopK)))
	if rapid.Bool().Draw(t, "ties") {
		c.fill["x"] = func(i int) float64 { return math.Floor(noise("x", i) * 3) }
	}
	c.steps = drawSteps(t, func(int) step { return step{"x": {draw(t, "live rows", 1, rows), width}} })
	return c
}

func TestTopK(t *testing.T) {
	var trials []*trial
	for _, c := range [][2]int{{1, 1}, {64, 64}, {1023, 5}, {1024, 64}, {1025, 64}, {17 * 1024, 64}} {
		tr := topKTrial(c[0], 2, c[1])
		tr.steps = []step{{"x": {2, c[0]}}, {"x": {1, c[0]}}}
		trials = append(trials, tr)
	}
	large := topKTrial(128259, 1, 64) // a vocabulary
	large.steps = []step{{"x": {1, 128259}}}
	trials = append(trials, large)
	nan, inf, most := math.NaN(), math.Inf(1), float64(math.MaxFloat32)
	for _, c := range []struct {
		name string
		x    []float64
	}{
		{"the first of equals", []float64{1, 5, 5, 5, 1}},
		{"a zero of either sign is the same", []float64{-1, math.Copysign(0, -1), 0, -2, -3}},
		{"a NaN is before any number", []float64{inf, 3, nan, -inf, nan}},
		{"a NaN with a sign too", []float64{inf, math.Copysign(nan, -1), nan, 2, 1}},
		{"infinities are counted apart", []float64{-inf, inf, -inf, 1, 0}},
		{"all are minus infinity", []float64{-inf, -inf, -inf, -inf, -inf}},
		{"all are NaN", []float64{nan, nan, nan, nan, nan}},
		{"the ends of the range", []float64{-most, most, 0, 1e-45, -1e-45}},
	} {
		tr := topKTrial(5, 1, 4)
		tr.name, tr.steps = c.name, []step{{"x": {1, 5}}}
		tr.fill["x"] = func(i int) float64 { return c.x[i] }
		trials = append(trials, tr)
	}
	ties := topKTrial(20000, 2, 33)
	ties.name = "the first of equals in different parts"
	ties.fill["x"] = func(i int) float64 { return float64(i / 5 % 2) }
	ties.steps = []step{{"x": {2, 20000}}}
	hold(t, append(trials, ties)...)
}
