package vision

import (
	"fmt"
	"math"
	"slices"

	"gpuscope/engine/graph"
	"gpuscope/ops/kind"
	"gpuscope/ops/reference"
	"gpuscope/shaders"
)

// Convolution adds convolution in one or two dims. Each element of y is the sum of the products of a kernel
// with the elements of x that it covers, plus a bias. Elements outside of x are 0. min and max limit the
// result.
//
//	x       [N, C, W] or [N, C, H, W]
//	weight  [K, C/groups, ...], or [C, K/groups, ...] if transposed. The last dims are the kernel's size. No
//	        dim can change between steps
//	bias    [K], or graph.None
//	y       [N, K, ...]
//
// The lists stride, padding, dilation and output_padding have one number for each dim of the kernel, or one
// number for all dims. An empty list means a stride or dilation of 1, and a padding of 0. If transposed is
// true, each element of x adds the kernel, multiplied by the element, to y. The stride is then the distance
// in y between two such additions, and y has output_padding more elements at the end.
//
// An invocation computes 4 channels of y at one position. If the number of channels in a group is not a
// multiple of 4, it computes one channel.
func Convolution(b *graph.Builder, name string, args kind.Args) graph.ValueID {
	return kindConvolution.BuildOne(b, name, args)
}

var kindConvolution = kind.Kind{
	Name: "convolution",
	Doc: "The convolution of x with weight, plus bias, in one or two dims. Elements outside of x are 0. " +
		"min and max limit the result.",
	Args: []kind.Arg{
		kind.Required("x", kind.F32Tensor), kind.Required("weight", kind.F32Tensor),
		kind.Optional("bias", kind.F32Tensor, graph.None), kind.Optional("stride", kind.IntsType, []int{}),
		kind.Optional("padding", kind.IntsType, []int{}), kind.Optional("dilation", kind.IntsType, []int{}),
		kind.Optional("transposed", kind.BoolType, false),
		kind.Optional("output_padding", kind.IntsType, []int{}), kind.Optional("groups", kind.IntType, 1),
		kind.Optional("min", kind.FloatType, math.Inf(-1)),
		kind.Optional("max", kind.FloatType, math.Inf(1)),
	},
	Constructors: []string{"Convolution"}, Add: addConvolution,
}

func addConvolution(c *kind.Call) []graph.ValueID {
	o := &convolution{
		x: c.ArgTensor("x"), weight: c.ArgTensor("weight"), bias: c.ArgTensor("bias"),
		y:      c.Out("", graph.F32),
		groups: c.ArgInt("groups"), lo: c.ArgFloat("min"), hi: c.ArgFloat("max"), block: 1,
	}
	o.transposed = c.ArgBool("transposed")
	x, w := c.MaxDims(o.x), c.MaxDims(o.weight)
	if rank := len(x); rank != 3 && rank != 4 || len(w) != rank || !slices.Equal(c.MinDims(o.weight), w) {
		return c.Fail("x has dims %v and weight has dims %v; want rank 3 for both or rank 4 for both, and fixed dims for weight",
			x, w)
	}
	o.flat = len(x) == 3
	if !o.readWindow(c, w) {
		return nil
	}
	o.in, o.out = w[1]*o.groups, w[0]
	if o.transposed {
		o.in, o.out = w[0], w[1]*o.groups
	}
	switch {
	case o.in < c.MinDims(o.x)[1] || o.in > x[1]:
		return c.Fail("x has dims %v, want %d channels because weight has dims %v and there are %d groups",
			x, o.in, w, o.groups)
	case w[0]%o.groups != 0:
		return c.Fail("weight has dims %v; its first dim must be a multiple of the %d groups",
			w, o.groups)
	case o.bias != graph.None && !slices.Equal(c.MinDims(o.bias), []int{o.out}):
		return c.Fail("bias has dims %v, want [%d]", c.MaxDims(o.bias), o.out)
	}
	if o.out/o.groups%4 == 0 {
		o.block = 4
	}
	o.kernelOf = c.NewKernel("convolution", o.constants(shaders.Constants{
		"Lanes": kind.ThreadLanes, "Block": o.block, "Transposed": o.transposed,
		"Bias": o.bias != graph.None, "Limited": o.limited(),
	}))
	return c.AddOp(o, o.y)
}

type convolution struct {
	window
	x, weight, bias, y graph.ValueID
	flat               bool // x has one dim after the channels
	groups, in, out    int  // number of groups, and of channels of x and of y
	block              int  // channels of y that an invocation computes
	lo, hi             float64
	kernelOf           *graph.Kernel
}

func (o *convolution) readWindow(c *kind.Call, weight []int) bool {
	dims, one, zero := len(weight)-2, [2]int{1, 1}, [2]int{}
	o.kernel = one
	copy(o.kernel[2-dims:], weight[2:])
	ok := true
	for _, list := range []struct {
		to        *[2]int
		name      string
		least     int
		byDefault [2]int
	}{
		{&o.stride, "stride", 1, one},
		{&o.padding, "padding", 0, zero},
		{&o.dilation, "dilation", 1, one},
		{&o.outputPadding, "output_padding", 0, zero},
	} {
		if ok {
			*list.to, ok = sizes(c, list.name, dims, list.least, list.byDefault)
		}
	}
	if ok && (o.groups < 1 || max(o.kernel[0], o.kernel[1], o.groups) > largestStep) {
		c.Fail("groups is %d and the kernel has size %v; want groups and each kernel size from 1 to %d",
			o.groups, o.kernel, largestStep)
		ok = false
	}
	for k := range 2 {
		if ok && o.outputPadding[k] >= max(o.stride[k], o.dilation[k]) {
			c.Fail("output_padding is %v; each number must be below the stride (%v) or the dilation (%v)",
				o.outputPadding, o.stride, o.dilation)
			ok = false
		}
	}
	return ok
}

func (o *convolution) limited() bool { return !math.IsInf(o.lo, 0) || !math.IsInf(o.hi, 0) }

func (o *convolution) Spec() graph.Spec {
	s := graph.Spec{
		Kind: "convolution", Inputs: []graph.ValueID{o.x, o.weight}, Outputs: []graph.ValueID{o.y},
		Attrs: map[string]any{
			"stride": o.stride[:], "padding": o.padding[:], "dilation": o.dilation[:], "groups": o.groups,
			"transposed": o.transposed,
		},
	}
	bind := []graph.Binding{graph.Bind("x", o.x), graph.Bind("weight", o.weight)}
	if o.bias != graph.None {
		s.Inputs, bind = append(s.Inputs, o.bias), append(bind, graph.Bind("bias", o.bias))
	}
	if o.limited() {
		s.Attrs["min"], s.Attrs["max"] = float32(o.lo), float32(o.hi)
	}
	s.Slots = []graph.Slot{{Uses: kind.Uses(o.kernelOf, append(bind, graph.Bind("y", o.y))...)}}
	return s
}

func (o *convolution) Corners(r *graph.Ranges) []graph.Corner {
	return o.corners(r, o.x, len(r.Max(o.x))-2, o.in)
}

// outDims returns the dims of y.
func (o *convolution) outDims(x []int, out *[4]int) []int {
	rank := copy(out[:], x)
	out[1] = o.out
	for k := 2; k < rank; k++ {
		out[k] = o.window.out(x[k], k-rank+2)
	}
	return out[:rank]
}

func (o *convolution) Plan(p *graph.Planner) error {
	x := p.Dims(o.x)
	var room [4]int
	dims := o.outDims(x, &room)
	if x[1] != o.in {
		return p.Errorf("x has dims %v, want %d channels", x, o.in)
	}
	if slices.Min(dims) < 1 {
		return p.Errorf("x has dims %v, which is too small for %s", x, &o.window)
	}
	p.SetDims(o.y, dims...)
	count, h, w := planes(dims, o.flat)
	_, inH, inW := planes(x, o.flat)
	n, perGroup := count*h*w, o.in/o.groups
	l := p.Dispatch(0, p.Vectors(n, o.block, kind.ThreadLanes))
	l.Params.U32("n", n/o.block).U32("in_h", inH).U32("in_w", inW).U32("out_h", h).U32("out_w", w).
		U32("in_channels", o.in).U32("blocks", o.out/o.block).U32("group_in", perGroup).
		U32("group_out", o.out/o.groups)
	if o.limited() {
		l.Params.F32("lo", float32(o.lo)).F32("hi", float32(o.hi))
	}
	l.Bytes = 4 * (int64(p.Numel(o.x)) + int64(p.Numel(o.weight)) + int64(n))
	l.FLOPs = 2 * int64(n) * int64(perGroup) * int64(o.kernel[0]) * int64(o.kernel[1])
	if o.transposed { // each element of x is used once for each element of the kernel
		l.FLOPs = 2 * int64(p.Numel(o.x)) * int64(p.Numel(o.weight)) / int64(o.in)
	}
	return nil
}

// source returns the index of the element of x that element k of the kernel multiplies at position `at` of
// y. `ok` is false if there is no such element.
func (o *convolution) source(at, k, in, axis int) (i int, ok bool) {
	if !o.transposed {
		i = at*o.stride[axis] + k*o.dilation[axis] - o.padding[axis]
		return i, i >= 0 && i < in
	}
	i = at + o.padding[axis] - k*o.dilation[axis]
	if i < 0 || i%o.stride[axis] != 0 {
		return 0, false
	}
	i /= o.stride[axis]
	return i, i < in
}

// weightAt returns the index of the first weight of a kernel. This kernel maps channel c of a group of x to
// channel k of y.
func (o *convolution) weightAt(k, c int) int {
	size, perIn, perOut := o.kernel[0]*o.kernel[1], o.in/o.groups, o.out/o.groups
	if o.transposed {
		return ((k/perOut*perIn+c)*perOut + k%perOut) * size
	}
	return (k*perIn + c) * size
}

func (o *convolution) Reference(r *reference.Ref) {
	x, weight := r.Tensor(o.x), r.Tensor(o.weight)
	var bias []float64
	if o.bias != graph.None {
		bias = r.Tensor(o.bias).Data
	}
	var room [4]int
	y := r.Result(o.y, slices.Clone(o.outDims(x.Dims, &room))...)
	count, h, w := planes(y.Dims, o.flat)
	_, inH, inW := planes(x.Dims, o.flat)
	rows := slices.Collect(r.Rows(o.y, count*h))
	reference.InParallel(rows, func(piece []int) {
		for _, row := range piece {
			oy, batch, k := row%h, row/h/o.out, row/h%o.out
			for ox := range w {
				sum := 0.0
				if bias != nil {
					sum = bias[k]
				}
				o.each(k, oy, ox, inH, inW, func(c, at, weightAt int) {
					sum += x.Data[(batch*o.in+c)*inH*inW+at] * weight.Data[weightAt]
				})
				if !math.IsNaN(sum) {
					sum = min(max(sum, o.lo), o.hi)
				}
				y.Row(row)[ox] = sum
			}
		}
	})
	r.Set(o.y, y)
}

// each(k, oy, ox, ...) calls f for every product that is added to the element of y in channel k, row oy and
// column ox. f gets the channel of x, the index in the plane of x, and the index of the weight.
func (o *convolution) each(k, oy, ox, inH, inW int, f func(c, at, weightAt int)) {
	perIn, first := o.in/o.groups, k/(o.out/o.groups)*(o.in/o.groups)
	for ky := range o.kernel[0] {
		iy, ok := o.source(oy, ky, inH, 0)
		if !ok {
			continue
		}
		for kx := range o.kernel[1] {
			ix, ok := o.source(ox, kx, inW, 1)
			if !ok {
				continue
			}
			for c := range perIn {
				f(first+c, iy*inW+ix, o.weightAt(k, c)+ky*o.kernel[1]+kx)
			}
		}
	}
}

// Tolerance is relative to the product of two Euclidean lengths: the largest length of a kernel's weights,
// and an upper limit for the length of the elements of x that a kernel covers. It is not relative to the
// result, because the terms of a sum can cancel out.
func (o *convolution) Tolerance(r *reference.Ref, _ graph.ValueID) reference.Tolerance {
	size, perIn := o.kernel[0]*o.kernel[1], o.in/o.groups
	weight, products := r.Tensor(o.weight).Data, size*perIn
	longest := 0.0
	list := make([]float64, 0, products)
	for k := range o.out {
		list = list[:0]
		for c := range perIn {
			at := o.weightAt(k, c)
			list = append(list, weight[at:at+size]...)
		}
		longest = max(longest, reference.Length(list))
	}
	most := longest * math.Sqrt(float64(products)) * r.Largest(o.x)
	if o.bias != graph.None {
		most += r.Largest(o.bias)
	}
	return reference.Tolerance{
		Rel: 2 * reference.Rounding, Abs: reference.SumRoundings(products) * reference.Rounding * most,
		Why: fmt.Sprintf("%d products summed in f32", products),
	}
}
