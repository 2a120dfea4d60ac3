package ops

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/x448/float16"
	"pgregory.net/rapid"

	"gpuscope/engine"
	"gpuscope/engine/gpu"
)

// q4Noise is a matrix of random nibbles, with scales that make results of order 1.
func q4Noise(name string, rows, cols, group int) Q4Matrix {
	return Q4Matrix{
		Name: name, Rows: rows, Cols: cols, Group: group,
		Nibbles: func() ([]byte, error) {
			data := make([]byte, rows*cols/2)
			for i := range data {
				data[i] = byte((noise(name, i) + 2) * 64)
			}
			return data, nil
		},
		Scales: func() ([]float32, error) {
			list := make([]float32, rows*cols/group)
			for i := range list {
				list[i] = float16.Fromfloat32(float32((noise(name+".scale", i) + 2.5) / 10 / math.Sqrt(float64(cols)))).Float32()
			}
			return list, nil
		},
	}
}

// linearCase is a matrix product in a graph.
type linearCase struct {
	kind        string // "linear", "linear_q4gsw", "linear_qcs4w"
	k, n, group int
	half, bias  bool
	live        []int // numbers of rows, the largest first
	route       string
}

func (c linearCase) String() string {
	s := fmt.Sprintf("%s %dx%d", c.kind, c.k, c.n)
	if c.group > 0 {
		s += fmt.Sprintf(" group %d", c.group)
	}
	if c.half {
		s += " half scales"
	}
	if c.bias {
		s += " bias"
	}
	return s + " " + c.route
}

func (c linearCase) build(b *engine.Builder) {
	x := b.Input("x", engine.F32, []int{1, 1, c.k}, []int{1, c.live[0], c.k})
	bias := engine.None
	if c.bias {
		bias = constant(b, "bias", c.n)
	}
	w := q4Noise("w", c.n, c.k, c.group)
	w.HalfScales = c.half
	switch c.kind {
	case "linear":
		b.Output(Linear(b, "y", x, scaled(b, "w", 1/math.Sqrt(float64(c.k)), c.n, c.k), bias))
	case "linear_q4gsw":
		b.Output(LinearQ4GSW(b, "y", x, w, bias))
	case "linear_qcs4w":
		w.HighNibbles = true
		b.Output(LinearQCS4W(b, "y", x, w))
	}
}

// scaled is a constant of noise times a factor.
func scaled(b *engine.Builder, name string, by float64, dims ...int) engine.ValueID {
	return b.Constant(name, engine.F32, dims, func() ([]byte, error) {
		list := make([]float32, product(dims))
		for i := range list {
			list[i] = float32(noise(name, i) * by)
		}
		return float32Bytes(list), nil
	})
}

func (c linearCase) trial() *trial {
	t := &trial{name: c.String(), build: c.build}
	for _, m := range c.live {
		t.steps = append(t.steps, step{"x": {1, m, c.k}})
	}
	return t
}

func TestLinear(t *testing.T) {
	for _, c := range []linearCase{
		{kind: "linear_q4gsw", k: 64, n: 128, group: 32, live: []int{128, 32, 1, 128}},
		{kind: "linear_q4gsw", k: 2048, n: 512, group: 32, half: true, live: []int{1}},
		{kind: "linear_q4gsw", k: 256, n: 96, group: 64, live: []int{96, 70, 5, 16, 17, 4, 2, 1}},
		{kind: "linear_q4gsw", k: 64, n: 16384, group: 32, live: []int{130,64,1}},
		{kind: "linear", k: 64, n: 16384, live: []int{130,64,1}},
		{kind: "linear", k: 67, n: 43, bias: true, live: []int{130,64,5,1}},
		{kind: "linear", k: 72, n: 43, bias: true, live: []int{130,64,5,2,1}},
		{kind: "linear_qcs4w", k: 72, n: 43, group: 72, live: []int{130,64,5,2,1}},
		{kind: "linear_q4gsw", k: 14336, n: 64, group: 32, half: true, live: []int{17, 7, 3, 1}},
	} {
		t.Run(c.String(), c.trial().run)
	}
}
var _ = rapid.Check
var _ = strings.Contains
var _ gpu.Limits
