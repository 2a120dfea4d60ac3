package ops

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gpuscope/engine/graph"
	"gpuscope/ops/kind"
	"gpuscope/ops/vision"
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

// pooled returns a trial of avg_pool2d or max_pool2d.
func pooled(m image, kindName string, args kind.Args) *trial {
	return &trial{
		name: fmt.Sprintf("%s of %v, %v", kindName, m.most, args), abs: 1e-5, rel: 1e-5,
		build: func(b *graph.Builder) {
			given := maps.Clone(args)
			given["x"] = m.input(b)
			for _, v := range New(b, kindName, "y", given) {
				b.Output(v)
			}
		},
		fill: map[string]func(int) float64{"x": func(i int) float64 {
			if odd := oddOfPool[i%97]; odd != 0 && kindName == "max_pool2d" {
				return odd
			}
			return math.Round(8*noise("x", i)) / 8 // some elements of a window are equal
		}},
	}
}

var oddOfPool = map[int]float64{5: math.NaN(), 23: math.Inf(-1), 24: math.Inf(-1), 61: math.Inf(1)}

func samplePool(t *rapid.T, kindName string) *trial {
	m := image{most: []int{rapid.IntRange(1, 2).Draw(t, "batch"), rapid.IntRange(1, 3).Draw(t, "channels")}}
	kernel, stride, padding, dilation := make([]int, 2), make([]int, 2), make([]int, 2), []int{1, 1}
	for k := range 2 {
		kernel[k] = rapid.IntRange(1, 4).Draw(t, "kernel")
		stride[k] = rapid.IntRange(1, 4).Draw(t, "stride")
		if kindName == "max_pool2d" {
			dilation[k] = rapid.IntRange(1, 2).Draw(t, "dilation")
		}
		span := (kernel[k]-1)*dilation[k] + 1
		padding[k] = rapid.IntRange(0, span/2).Draw(t, "padding")
		m.least[k] = max(1, span-2*padding[k])
		m.most = append(m.most, m.least[k]+draw(t, "size", 0, 20))
	}
	args := kind.Args{
		"kernel_size": kernel, "stride": stride, "padding": padding,
		"ceil_mode": rapid.Bool().Draw(t, "ceil"),
	}
	if kindName == "max_pool2d" {
		args["dilation"], args["indices"] = dilation, rapid.Bool().Draw(t, "indices")
	} else {
		args["count_include_pad"] = rapid.Bool().Draw(t, "count padding")
		args["divisor_override"] = rapid.SampledFrom([]int{0, 0, 1, 7}).Draw(t, "divisor")
	}
	c := pooled(m, kindName, args)
	c.steps = drawSteps(t, func(int) step { return m.draw(t) })
	return c
}

func TestPool(t *testing.T) {
	var trials []*trial
	for _, kindName := range []string{"avg_pool2d", "max_pool2d"} {
		for _, args := range []kind.Args{
			{"kernel_size": []int{2}},
			{"kernel_size": []int{3, 2}, "stride": []int{2, 3}, "padding": []int{1, 0}},
			{"kernel_size": []int{3, 3}, "stride": []int{2, 2}, "padding": []int{1}, "ceil_mode": true},
			{"kernel_size": []int{3, 3}, "stride": []int{4, 4}, "ceil_mode": true},
		} {
			given := maps.Clone(args)
			if kindName == "max_pool2d" {
				given["indices"] = true
			} else {
				given["count_include_pad"] = false
			}
			for _, args := range []kind.Args{args, given} {
				m := image{most: []int{2, 3, 9, 8}, least: [2]int{4, 3}}
				c := pooled(m, kindName, args)
				c.steps = m.ends()
				trials = append(trials, c)
			}
		}
	}
	hold(t, trials...)
}

// The number of positions of a window follows PyTorch's rules: a window that would begin in the padding at
// the end is left out.
func TestPoolWithCeilModeCountsWindows(t *testing.T) {
	for _, test := range []struct{ in, kernel, stride, padding, floor, ceil int }{
		{5, 3, 2, 0, 2, 2},
		{6, 3, 2, 0, 2, 3},
		{4, 2, 3, 0, 1, 2},
		{4, 1, 4, 0, 1, 1},
		{5, 2, 4, 1, 2, 2},
		{4, 3, 3, 1, 2, 2},
		{7, 3, 2, 1, 4, 4},
		{3, 2, 5, 1, 1, 1},
	} {
		for _, ceil := range []bool{false, true} {
			b := tinyBuilder()
			x := b.Input("x", graph.F32, []int{1, 1, test.in}, []int{1, 1, test.in})
			y := New(b, "max_pool2d", "y", kind.Args{
				"x": x, "kernel_size": []int{1, test.kernel}, "stride": []int{1, test.stride},
				"padding": []int{0, test.padding}, "ceil_mode": ceil,
			})
			if b.Err() != nil {
				t.Fatal(b.Err())
			}
			want := test.floor
			if ceil {
				want = test.ceil
			}
			if got := b.MaxDims(y[0])[2]; got != want {
				t.Errorf("%+v, ceil %v: %d windows, want %d", test, ceil, got, want)
			}
		}
	}
}

// upsampled returns a trial of an upsampling operator. If sized is true, the size of the result is a
// SymInt.
func upsampled(m image, kindName string, sized bool, args kind.Args) *trial {
	return &trial{
		name: fmt.Sprintf("%s of %v, %v, sized %v", kindName, m.most, args, sized), abs: 1e-4, rel: 1e-4,
		build: func(b *graph.Builder) {
			given := maps.Clone(args)
			given["x"] = m.input(b)
			if sized {
				given["output_size"] = []kind.Int{kind.Sym(b.SymInt("size", 1, 40, 1)), kind.Fixed(9)}
			}
			b.Output(New(b, kindName, "y", given)[0])
		},
	}
}

func sampleUpsample(t *rapid.T, kindName string) *trial {
	m := image{
		most: []int{
			rapid.IntRange(1, 2).Draw(t, "batch"), rapid.IntRange(1, 3).Draw(t, "channels"),
			draw(t, "height", 2, 20), draw(t, "width", 2, 20),
		},
		least: [2]int{2, 2},
	}
	args := kind.Args{}
	if kindName == "upsample_bilinear2d" {
		args["align_corners"] = rapid.Bool().Draw(t, "align")
	}
	sized := rapid.Bool().Draw(t, "sized")
	if !sized {
		scales := []float64{0.5, 1, 1.3, 1.6, 2, 3, 7. / 3}
		args["scale_h"] = rapid.SampledFrom(scales).Draw(t, "scale_h")
		args["scale_w"] = rapid.SampledFrom(scales).Draw(t, "scale_w")
	}
	c := upsampled(m, kindName, sized, args)
	c.steps = drawSteps(t, func(int) step {
		s := m.draw(t)
		if sized {
			s["size"] = []int{rapid.IntRange(1, 40).Draw(t, "live size of y")}
		}
		return s
	})
	return c
}

func TestUpsample(t *testing.T) {
	var trials []*trial
	for i := range vision.Upsamples {
		kindName := vision.Upsamples[i].Kind
		for _, args := range []kind.Args{
			{"scale_h": 2.0, "scale_w": 2.0},
			{"scale_h": 1.6, "scale_w": 3.0},
			{"scale_h": 1.6, "scale_w": 1.6, "align_corners": true},
		} {
			if args["align_corners"] != nil && kindName == "upsample_nearest2d" {
				continue
			}
			m := image{most: []int{2, 3, 5, 7}, least: [2]int{1, 2}}
			c := upsampled(m, kindName, false, args)
			c.steps = m.ends()
			trials = append(trials, c)
		}
	}
	hold(t, trials...)
}

// sampled returns a trial of grid_sampler_2d with points outside of the image.
func sampled(m image, points []int, mode, padding int, align bool) *trial {
	return &trial{
		name: fmt.Sprintf("%v at %v, mode %d, padding %d, align %v", m.most, points, mode, padding, align),
		abs:  1e-4, rel: 1e-4,
		build: func(b *graph.Builder) {
			x := m.input(b)
			at := b.Input("grid", graph.F32, []int{1, 1, 1, 2}, append(slices.Clone(points), 2))
			b.Output(vision.GridSampler2D(b, "y", x, at, mode, padding, align))
		},
	}
}

func sampleSampler(t *rapid.T) *trial {
	batch := rapid.IntRange(1, 2).Draw(t, "batch")
	m := image{
		most: []int{
			batch, rapid.IntRange(1, 3).Draw(t, "channels"), draw(t, "height", 1, 20),
			draw(t, "width", 1, 20),
		},
		least: [2]int{1, 1},
	}
	points := []int{batch, draw(t, "rows of points", 1, 20), draw(t, "columns of points", 1, 20)}
	c := sampled(m, points, rapid.IntRange(0, 1).Draw(t, "mode"), rapid.IntRange(0, 2).Draw(t, "padding"),
		rapid.Bool().Draw(t, "align"))
	c.steps = drawSteps(t, func(int) step {
		s := m.draw(t)
		rows, columns := draw(t, "live rows", 1, points[1]), draw(t, "live columns", 1, points[2])
		s["grid"] = []int{s["x"][0], rows, columns, 2}
		return s
	})
	return c
}

func TestGridSampler(t *testing.T) {
	var trials []*trial
	for mode := range 2 {
		for padding := range 3 {
			for _, align := range []bool{false, true} {
				m := image{most: []int{2, 3, 6, 5}, least: [2]int{1, 1}}
				c := sampled(m, []int{2, 7, 11}, mode, padding, align)
				c.steps = []step{
					{"x": {2, 3, 6, 5}, "grid": {2, 7, 11, 2}}, {"x": {1, 3, 1, 1}, "grid": {1, 3, 1, 2}},
				}
				trials = append(trials, c)
			}
		}
	}
	hold(t, trials...)
}

// priorsOf returns a trial of grid_priors.
func priorsOf(m image, step int, offset float64) *trial {
	return &trial{
		name: fmt.Sprintf("priors of %v, stride %d, offset %v", m.most, step, offset),
		build: func(b *graph.Builder) {
			b.Output(vision.GridPriors(b, "y", m.input(b), step, offset))
		},
	}
}

func samplePriors(t *rapid.T) *trial {
	m := image{most: []int{1, 2, draw(t, "height", 1, 20), draw(t, "width", 1, 20)}, least: [2]int{1, 1}}
	c := priorsOf(m, rapid.IntRange(1, 32).Draw(t, "stride"),
		rapid.SampledFrom([]float64{0, 0.5, -1.25}).Draw(t, "offset"))
	c.steps = drawSteps(t, func(int) step { return m.draw(t) })
	return c
}

func TestGridPriors(t *testing.T) {
	m := image{most: []int{1, 3, 8, 10}, least: [2]int{1, 1}}
	c := priorsOf(m, 8, 0.5)
	c.steps = m.ends()
	hold(t, c)
}
