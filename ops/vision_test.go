package ops

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"gpuscope/engine/graph"
	"gpuscope/ops/kind"
)

// image describes the input of an operator on images in a trial: the largest dims, and the smallest height
// and width.
type image struct {
	most  []int
	least [2]int
}

func (m image) input(b *graph.Builder) graph.ValueID {
	lo := append([]int{1}, m.most[1:]...)
	for k := 2; k < len(lo); k++ {
		lo[k] = m.least[k-len(lo)+2]
	}
	return b.Input("x", graph.F32, lo, m.most)
}

// draw draws live dims.
func (m image) draw(t *rapid.T) step {
	dims := []int{draw(t, "live batch", 1, m.most[0]), m.most[1]}
	for k := 2; k < len(m.most); k++ {
		dims = append(dims, draw(t, "live size", m.least[k-len(m.most)+2], m.most[k]))
	}
	return step{"x": dims}
}

// ends returns the largest and the smallest live dims.
func (m image) ends() []step {
	small := []int{1, m.most[1]}
	for k := 2; k < len(m.most); k++ {
		small = append(small, m.least[k-len(m.most)+2])
	}
	return []step{{"x": m.most}, {"x": small}}
}

// convolved returns a trial of a convolution with kernel, a list of one or two sizes.
func convolved(m image, in, out int, kernel []int, bias bool, args kind.Args) *trial {
	return &trial{
		name: fmt.Sprintf("%v by %v, %d to %d channels, %v, bias %v", m.most, kernel, in, out, args, bias),
		abs:  1e-4, rel: 1e-4,
		build: func(b *graph.Builder) {
			groups := 1
			if g, ok := args["groups"]; ok {
				groups = g.(int)
			}
			dims := []int{out, in / groups}
			if args["transposed"] == true {
				dims = []int{in, out / groups}
			}
			given := kind.Args{"x": m.input(b), "weight": constant(b, "weight", append(dims, kernel...)...)}
			if bias {
				given["bias"] = constant(b, "bias", out)
			}
			for name, v := range args {
				given[name] = v
			}
			b.Output(New(b, "convolution", "y", given)[0])
		},
	}
}

func sampleConvolution(t *rapid.T) *trial {
	dims := rapid.IntRange(1, 2).Draw(t, "dims")
	groups := rapid.SampledFrom([]int{1, 1, 2, 3, 4}).Draw(t, "groups")
	in := groups * rapid.IntRange(1, 3).Draw(t, "in")
	out := groups * rapid.SampledFrom([]int{1, 2, 3, 4, 8}).Draw(t, "out")
	transposed := rapid.Bool().Draw(t, "transposed")
	m := image{most: []int{rapid.IntRange(1, 2).Draw(t, "batch"), in}}
	args := kind.Args{"groups": groups, "transposed": transposed}
	var kernel, stride, padding, dilation, more []int
	for k := range dims {
		kernel = append(kernel, rapid.IntRange(1, 4).Draw(t, "kernel"))
		stride = append(stride, rapid.IntRange(1, 3).Draw(t, "stride"))
		dilation = append(dilation, rapid.IntRange(1, 2).Draw(t, "dilation"))
		span := (kernel[k]-1)*dilation[k] + 1
		padding = append(padding, rapid.IntRange(0, span/2).Draw(t, "padding"))
		more = append(more, rapid.IntRange(0, max(stride[k], dilation[k])-1).Draw(t, "more"))
		least := max(1, span-2*padding[k])
		for transposed && (least-1)*stride[k]-2*padding[k]+span+more[k] < 1 {
			least++
		}
		m.least[2-dims+k] = least
		m.most = append(m.most, least+draw(t, "size", 0, 20))
	}
	args["stride"], args["padding"], args["dilation"] = stride, padding, dilation
	if transposed {
		args["output_padding"] = more
	}
	if rapid.Bool().Draw(t, "limited") {
		args["min"] = -0.5
	}
	c := convolved(m, in, out, kernel, rapid.Bool().Draw(t, "bias"), args)
	c.steps = drawSteps(t, func(int) step { return m.draw(t) })
	return c
}

func TestConvolution(t *testing.T) {
	var trials []*trial
	for _, c := range []struct {
		most    []int
		in, out int
		kernel  []int
		args    kind.Args
	}{
		{[]int{2, 4, 9}, 4, 6, []int{1}, nil},
		{[]int{1, 3, 70}, 3, 5, []int{3}, kind.Args{"padding": []int{1}, "stride": []int{2}}},
		{[]int{1, 8, 7, 9}, 8, 8, []int{3, 3}, kind.Args{"groups": 8, "padding": []int{1}}},
		{[]int{2, 8, 7, 9}, 8, 16, []int{3, 2}, kind.Args{
			"groups": 2, "dilation": []int{2, 3}, "padding": []int{2, 1},
		}},
		{[]int{1, 4, 6, 5}, 4, 8, []int{3, 3}, kind.Args{"stride": []int{2, 1}, "min": 0.0, "max": 6.0}},
		{[]int{1, 6, 5, 4}, 6, 4, []int{3, 2}, kind.Args{
			"transposed": true, "stride": []int{2, 3}, "padding": []int{1, 0}, "output_padding": []int{1, 2},
			"groups": 2,
		}},
		{[]int{1, 2, 5}, 2, 3, []int{4}, kind.Args{
			"transposed": true, "stride": []int{2}, "dilation": []int{2},
		}},
	} {
		for _, bias := range []bool{false, true} {
			m := image{most: c.most, least: [2]int{5, 5}}
			if len(c.most) == 4 {
				m.least = [2]int{c.most[2] - 1, c.most[3] - 1}
			}
			one := convolved(m, c.in, c.out, c.kernel, bias, c.args)
			one.steps = m.ends()
			trials = append(trials, one)
		}
	}
	hold(t, trials...)
}
