package ops

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"gpuscope/engine/graph"
	"gpuscope/ops/basic"
	"gpuscope/ops/kind"
)

// bmmTrial is a product of up to batch matrices of up to m x k and k x n.
func bmmTrial(batch, m, n, k int, transposed bool) *trial {
	return &trial{
		name: fmt.Sprintf("%d of %dx%dx%d transposed %v", batch, m, n, k, transposed), abs: 1e-3, rel: 1e-3,
		build: func(b *graph.Builder) {
			second := []int{batch, k, n}
			lowest := []int{1, k, 1}
			if transposed {
				second[1], second[2], lowest[1], lowest[2] = n, k, 1, k
			}
			x := b.Input("x", graph.F32, []int{1, 1, k}, []int{batch, m, k})
			w := b.Input("w", graph.F32, lowest, second)
			b.Output(basic.BMM(b, "y", x, w, transposed, 0.5))
		},
	}
}

// bmmStep is a live point of bmmTrial.
func bmmStep(batch, m, n, k int, transposed bool) step {
	if transposed {
		return step{"x": {batch, m, k}, "w": {batch, n, k}}
	}
	return step{"x": {batch, m, k}, "w": {batch, k, n}}
}

func sampleBMM(t *rapid.T) *trial {
	batch, m := draw(t, "batch", 1, 3), draw(t, "m", 1, 70)
	n, k, transposed := draw(t, "n", 1, 70), draw(t, "k", 1, 70), rapid.Bool().Draw(t, "transposed")
	c := bmmTrial(batch, m, n, k, transposed)
	c.steps = drawSteps(t, func(int) step {
		return bmmStep(draw(t, "live batch", 1, batch), draw(t, "live m", 1, m), draw(t, "live n", 1, n), k,
			transposed)
	})
	return c
}

func TestBMM(t *testing.T) {
	var trials []*trial
	for _, transposed := range []bool{false, true} {
		for _, size := range [][3]int{{1, 1, 1}, {17, 33, 15}, {16, 16, 16}, {5, 64, 130}} {
			m, n, k := size[0], size[1], size[2]
			c := bmmTrial(3, m, n, k, transposed)
			c.steps = []step{
				bmmStep(3, m, n, k, transposed), bmmStep(1, 1, 1, k, transposed),
				bmmStep(2, (m+1)/2, (n+1)/2, k, transposed),
			}
			trials = append(trials, c)
		}
	}
	hold(t, trials...)
}

// indexSelectTrial selects up to n rows of dim axis.
func indexSelectTrial(axis, n int, lowest, highest []int) *trial {
	return &trial{
		name:  fmt.Sprintf("%d rows of dim %d of %v", n, axis, highest),
		below: map[string]int{"index": highest[axis] + 2}, // some are past the end
		build: func(b *graph.Builder) {
			x := b.Input("x", graph.F32, lowest, highest)
			b.Output(basic.IndexSelect(b, "y", x, axis, b.Input("index", graph.I32, []int{1}, []int{n})))
		},
	}
}

func sampleIndexSelect(t *rapid.T) *trial {
	highest := []int{draw(t, "a", 1, 9), draw(t, "b", 1, 40), draw(t, "c", 1, 9)}
	n := draw(t, "n", 1, 70)
	c := indexSelectTrial(rapid.IntRange(0, 2).Draw(t, "axis"), n, []int{1, 1, 1}, highest)
	c.below = map[string]int{"index": 12}
	c.steps = drawSteps(t, func(int) step {
		dims := make([]int, 3)
		for k := range dims {
			dims[k] = draw(t, "live", 1, highest[k])
		}
		return step{"x": dims, "index": {draw(t, "live n", 1, n)}}
	})
	return c
}

func TestIndexSelect(t *testing.T) {
	var trials []*trial
	for axis := range 3 {
		c := indexSelectTrial(axis, 65, []int{1, 1, 1}, []int{3, 5, 7})
		c.steps = []step{
			{"x": {3, 5, 7}, "index": {65}}, {"x": {1, 1, 1}, "index": {1}}, {"x": {2, 4, 3}, "index": {7}},
		}
		trials = append(trials, c)
	}
	hold(t, trials...)
}

func conversionTrial(kindName string, rows, width int) *trial {
	from := graph.F32
	if kindName == "to_f32" {
		from = graph.I32
	}
	return &trial{
		name: fmt.Sprintf("%s %dx%d", kindName, rows, width),
		build: func(b *graph.Builder) {
			x := b.Input("x", from, []int{1, width}, []int{rows, width})
			b.Output(New(b, kindName, "y", kind.Args{"x": x})[0])
		},
		fill: map[string]func(int) float64{"x": func(i int) float64 {
			edges := []float64{0, -1, 1.75, -2.75, 16777217, -2147483648, 2147483647}
			if i%11 < len(edges) {
				return edges[i%11]
			}
			return noise("x", i) * 1000
		}},
	}
}

func sampleConversion(t *rapid.T, kindName string) *trial {
	rows, width := draw(t, "rows", 1, 70), draw(t, "width", 1, 300)
	c := conversionTrial(kindName, rows, width)
	c.steps = drawSteps(t, func(int) step { return step{"x": {draw(t, "live rows", 1, rows), width}} })
	return c
}

func TestConversions(t *testing.T) {
	var trials []*trial
	for i := range basic.Conversions {
		c := conversionTrial(basic.Conversions[i].Kind, 3, 65)
		c.steps = []step{{"x": {3, 65}}, {"x": {1, 65}}}
		trials = append(trials, c)
	}
	hold(t, trials...)
}
