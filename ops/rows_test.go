package ops

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"gpuscope/engine/graph"
	"gpuscope/ops/basic"
	"gpuscope/ops/kind"
)

func argmaxTrial(width, rows int, keepDim bool) *trial {
	return &trial{
		name: fmt.Sprintf("%d rows of %d", rows, width),
		build: func(b *graph.Builder) {
			x := b.Input("x", graph.F32, []int{1, width}, []int{rows, width})
			y, value := basic.ArgmaxValue(b, "y", x, keepDim)
			b.Output(basic.Argmax(b, "alone", x, keepDim))
			b.Output(y)
			b.Output(value)
		},
	}
}

func sampleArgmax(t *rapid.T) *trial {
	rows, width := draw(t, "rows", 1, 70), draw(t, "width", 1, 300)
	if rapid.IntRange(0, 3).Draw(t, "long") == 0 {
		rows, width = 2, rapid.IntRange(basic.ArgmaxWhole-1, 3*basic.ArgmaxWhole).Draw(t, "long width")
	}
	c := argmaxTrial(width, rows, rapid.Bool().Draw(t, "keep dim"))
	if rapid.Bool().Draw(t, "ties") {
		c.fill = map[string]func(int) float64{"x": func(i int) float64 {
			return math.Floor(noise("x",
				i) * 2)
		}}
	}
	c.steps = drawSteps(t, func(int) step { return step{"x": {draw(t, "live rows", 1, rows), width}} })
	return c
}

func TestArgmax(t *testing.T) {
	var trials []*trial
	for _, width := range []int{1, 3, 64, 255, 257, 4096, 8192, 8193, 10240, 128256} {
		c := argmaxTrial(width, 3, false)
		c.steps = []step{{"x": {3, width}}, {"x": {1, width}}}
		trials = append(trials, c)
	}
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		name string
		x    []float64
	}{
		{"the first of equals", []float64{1, 5, 5, 5}},
		{"a zero of either sign is the same", []float64{-1, math.Copysign(0, -1), 0, -2}},
		{"all are minus infinity", []float64{-inf, -inf, -inf, -inf}},
		{"a NaN is before any number", []float64{inf, 3, nan, nan}},
		{"a NaN with a sign too", []float64{inf, math.Copysign(nan, -1), nan, 2}},
		{"subnormal numbers count", []float64{0, 1e-45, -1e-45, 0}},
		{"all are negative", []float64{-3, -1, -2, -1}},
	} {
		tr := argmaxTrial(4, 1, true)
		tr.name, tr.fill, tr.steps = c.name,
			map[string]func(int) float64{"x": func(i int) float64 { return c.x[i] }}, []step{{"x": {1, 4}}}
		trials = append(trials, tr)
	}
	ties := argmaxTrial(20000, 2, false)
	ties.name = "the first of equals in different parts"
	ties.fill = map[string]func(int) float64{"x": func(i int) float64 { return float64(i / 5000 % 2) }}
	ties.steps = []step{{"x": {2, 20000}}}
	hold(t, append(trials, ties)...)
}

func softmaxTrial(lo, hi []int) *trial {
	return &trial{
		name: fmt.Sprint(hi), abs: 1e-6, rel: 1e-5,
		build: func(b *graph.Builder) { b.Output(basic.Softmax(b, "y", b.Input("x", graph.F32, lo, hi))) },
		fill:  map[string]func(int) float64{"x": func(i int) float64 { return 20 * noise("x", i) }},
	}
}

func sampleSoftmax(t *rapid.T) *trial {
	rows, width := draw(t, "rows", 1, 70), draw(t, "width", 1, 600)
	least := rapid.SampledFrom([]int{1, width}).Draw(t, "least width")
	c := softmaxTrial([]int{1, least}, []int{rows, width})
	c.steps = drawSteps(t,
		func(int) step {
			return step{"x": {
				draw(t, "live rows", 1, rows),
				draw(t, "live width", least, width),
			}}
		})
	return c
}

func TestSoftmax(t *testing.T) {
	live := softmaxTrial([]int{1, 1, 1}, []int{4, 65, 300})
	live.steps = []step{{"x": {4, 65, 300}}, {"x": {1, 1, 1}}, {"x": {4, 64, 64}}, {"x": {2, 7, 257}}}
	fixed := softmaxTrial([]int{1, 2048}, []int{9, 2048})
	fixed.steps = []step{{"x": {9, 2048}}, {"x": {1, 2048}}}
	masked := softmaxTrial([]int{1, 8}, []int{2, 8})
	masked.name = "masked elements get nothing"
	masked.fill = map[string]func(int) float64{"x": func(i int) float64 {
		return []float64{
			1, 2, -1e30,
			math.Inf(-1), 3, -1e30, 0, -2,
		}[i%8]
	}}
	masked.steps = []step{{"x": {2, 8}}}
	hold(t, live, fixed, masked)
}

func layerNormTrial(width, rows int, offset float64) *trial {
	return &trial{
		name: fmt.Sprintf("width %d, around %v", width, offset), abs: 1e-4, rel: 1e-4,
		build: func(b *graph.Builder) {
			x := b.Input("x", graph.F32, []int{1, width}, []int{rows, width})
			b.Output(basic.LayerNorm(b, "y", x, constant(b, "weight", width), constant(b, "bias", width),
				1e-5))
		},
		fill: map[string]func(int) float64{"x": func(i int) float64 { return offset + noise("x", i) }},
	}
}

func sampleLayerNorm(t *rapid.T) *trial {
	width, rows := draw(t, "width", 1, 600), draw(t, "rows", 1, 70)
	c := layerNormTrial(width, rows, rapid.SampledFrom([]float64{0, -3}).Draw(t, "offset"))
	c.steps = drawSteps(t, func(int) step { return step{"x": {draw(t, "live rows", 1, rows), width}} })
	return c
}

func TestLayerNorm(t *testing.T) {
	var trials []*trial
	for _, width := range []int{1, 2, 33, 64, 768, 1025, 4096} {
		c := layerNormTrial(width, 17, 5)
		c.steps = []step{{"x": {17, width}}, {"x": {1, width}}, {"x": {16, width}}}
		trials = append(trials, c)
	}
	hold(t, trials...)
}

func reduceTrial(r *basic.Reduction, lo, hi, axes []int, keep bool) *trial {
	return &trial{
		name: fmt.Sprintf("%s %v over %v", r.Kind, hi, axes), abs: 1e-3, rel: 1e-4,
		build: func(b *graph.Builder) {
			x := b.Input("x", graph.F32, lo, hi)
			b.Output(KindOf(r.Kind).BuildOne(b, "y", kind.Args{"x": x, "dims": axes, "keepdim": keep}))
		},
		fill: map[string]func(int) float64{"x": func(i int) float64 {
			if at := i % 101; at < len(r.Also) {
				return r.Also[at]
			}
			return noise("x", i)
		}},
	}
}

func sampleReduce(t *rapid.T, r *basic.Reduction) *trial {
	rank := rapid.IntRange(1, 4).Draw(t, "rank")
	var lo, hi []int
	for range rank {
		n := draw(t, "dim", 1, []int{0, 600, 70, 20, 8}[rank])
		hi = append(hi, n)
		lo = append(lo, rapid.SampledFrom([]int{1, n}).Draw(t, "least"))
	}
	first := rapid.IntRange(0, rank-1).Draw(t, "first axis")
	var axes []int
	for k := first; k < rank; k++ {
		if k == first || rapid.Bool().Draw(t, "more") {
			axes = append(axes, k)
		} else {
			break
		}
	}
	if rapid.Bool().Draw(t, "from the end") {
		axes[0] -= rank
	}
	c := reduceTrial(r, lo, hi, axes, rapid.Bool().Draw(t, "keep"))
	c.steps = drawSteps(t, func(int) step {
		var dims []int
		for k := range rank {
			dims = append(dims, draw(t, "live dim", lo[k], hi[k]))
		}
		return step{"x": dims}
	})
	return c
}

func TestReductions(t *testing.T) {
	var trials []*trial
	for i := range basic.Reductions {
		for _, axes := range [][]int{{-1}, {0}, {1}, {0, 1}, {1, 2}, {0, 1, 2}, {2, 1}} {
			c := reduceTrial(&basic.Reductions[i], []int{1, 1, 12}, []int{3, 65, 12}, axes, len(axes) == 1)
			c.steps = []step{{"x": {3, 65, 12}}, {"x": {1, 1, 12}}, {"x": {2, 7, 12}}}
			trials = append(trials, c)
		}
	}
	hold(t, trials...)
}
