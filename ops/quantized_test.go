package ops

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"gpuscope/engine/graph"
	"gpuscope/ops/basic"
)

// quantizeTrial computes the scales and the zero points of the rows of x. The rows differ in size and sign,
// and every fifth is 0.
func quantizeTrial(rows, width int) *trial {
	return &trial{
		name: fmt.Sprintf("%dx%d", rows, width), abs: 1, rel: 1e-5,
		build: func(b *graph.Builder) {
			x := b.Input("x", graph.F32, []int{1, width}, []int{rows, width})
			scale, zero := basic.ChooseQParamsAffine(b, "q", x, -128, 127, 0x1p-23)
			b.Output(scale)
			b.Output(zero)
		},
		fill: map[string]func(int) float64{"x": func(i int) float64 {
			return (noise("x", i) + []float64{0, 3, -3, 1}[i/width%4]) * []float64{
				1, 100, 0.01, 1,
				0,
			}[i/width%5]
		}},
	}
}

func sampleChooseQParams(t *rapid.T) *trial {
	rows, width := draw(t, "rows", 1, 70), draw(t, "width", 1, 300)
	c := quantizeTrial(rows, width)
	c.steps = drawSteps(t, func(int) step { return step{"x": {draw(t, "live rows", 1, rows), width}} })
	return c
}

func TestChooseQParams(t *testing.T) {
	var trials []*trial
	for _, width := range []int{1, 64, 65, 1025} {
		c := quantizeTrial(17, width)
		c.steps = []step{{"x": {17, width}}, {"x": {1, width}}, {"x": {16, width}}}
		trials = append(trials, c)
	}
	hold(t, trials...)
}

// quantizeAffineTrial rounds the rows of x in steps of 1/64. The elements are not near the middle of two
// steps.
func quantizeAffineTrial(rows, width int) *trial {
	return &trial{
		name: fmt.Sprintf("%dx%d", rows, width), abs: 1e-6, rel: 1e-6,
		build: func(b *graph.Builder) {
			x := b.Input("x", graph.F32, []int{1, width}, []int{rows, width})
			scale := b.Input("scale", graph.F32, []int{1}, []int{rows})
			zero := b.Input("zero", graph.F32, []int{1}, []int{rows})
			b.Output(basic.QuantizeAffine(b, "y", x, scale, zero, -128, 127))
		},
		fill: map[string]func(int) float64{
			"x":     func(i int) float64 { return (float64(i*37%301-150) + 0.25) / 64 },
			"scale": func(int) float64 { return 1.0 / 64 },
			"zero":  func(i int) float64 { return float64(i*29%256 - 128) },
		},
	}
}

func quantizeAffineStep(rows, width int) step {
	return step{"x": {rows, width}, "scale": {rows}, "zero": {rows}}
}

func sampleQuantizeAffine(t *rapid.T) *trial {
	rows, width := draw(t, "rows", 1, 70), draw(t, "width", 1, 300)
	c := quantizeAffineTrial(rows, width)
	c.steps = drawSteps(t, func(int) step { return quantizeAffineStep(draw(t, "live rows", 1, rows), width) })
	return c
}

func TestQuantizeAffine(t *testing.T) {
	var trials []*trial
	for _, width := range []int{1, 65, 256} {
		c := quantizeAffineTrial(17, width)
		c.steps = []step{quantizeAffineStep(17, width), quantizeAffineStep(1, width)}
		trials = append(trials, c)
	}
	hold(t, trials...)
}
