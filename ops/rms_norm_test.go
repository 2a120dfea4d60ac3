package ops

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"gpuscope/engine/graph"
)

func rmsNormTrial(width, rows int) *trial {
	return &trial{
		name: fmt.Sprintf("width %d", width),
		build: func(b *graph.Builder) {
			x := b.Input("x", graph.F32, []int{1, 1, width}, []int{1, rows, width})
			b.Output(RMSNorm(b, "norm", x, constant(b, "weight", width), 1e-5))
		},
	}
}

func sampleRMSNorm(t *rapid.T) *trial {
	width, rows := draw(t, "width", 1, 1100), draw(t, "rows", 1, 130)
	c := rmsNormTrial(width, rows)
	c.steps = drawSteps(t, func(int) step { return step{"x": {1, draw(t, "live rows", 1, rows), width}} })
	return c
}

func TestRMSNorm(t *testing.T) {
	var trials []*trial
	for _, width := range []int{1, 32, 64, 100, 128, 130, 256, 896, 2048, 4096, 8192} {
		c := rmsNormTrial(width, 65)
		for _, rows := range []int{1, 2, 17, 64, 65} {
			c.steps = append(c.steps, step{"x": {1, rows, width}})
		}
		trials = append(trials, c)
	}
	hold(t, trials...)
}
