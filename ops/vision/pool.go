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

// MaxPool2D adds max_pool2d: each element of y is the largest element of x in a window. Elements outside of
// x are not counted. A NaN is larger than any number.
//
//	x  [C, H, W] or [N, C, H, W]
//	y  dims of x, with one element for each position of the window
//
// The lists kernel_size, stride, padding and dilation have a number for each of the two last dims, or one
// number for both. If stride is empty, it is the size of the window. If ceil_mode is true, the last window
// may end after the padding. If indices is true, a second output of i32 has the index of each element of y in
// its plane of x.
func MaxPool2D(b *graph.Builder, name string, args kind.Args) []graph.ValueID {
	return kindMaxPool.Build(b, name, args)
}

// AvgPool2D adds avg_pool2d: each element of y is the mean of x in a window, with the arguments and dims of
// MaxPool2D. If count_include_pad is true, the padding counts as zeros. A divisor_override other than 0
// replaces the number of elements by which the sum is divided.
func AvgPool2D(b *graph.Builder, name string, args kind.Args) graph.ValueID {
	return kindAvgPool.BuildOne(b, name, args)
}

var kindMaxPool = kind.Kind{
	Name: "max_pool2d",
	Doc: "The largest element of each window over the two last dims. If indices is true, the index of this " +
		"element in the plane of x is a second output.",
	Args: []kind.Arg{
		kind.Required("x", kind.F32Tensor), kind.Required("kernel_size", kind.IntsType),
		kind.Optional("stride", kind.IntsType, []int{}), kind.Optional("padding", kind.IntsType, []int{}),
		kind.Optional("dilation", kind.IntsType, []int{}), kind.Optional("ceil_mode", kind.BoolType, false),
		kind.Optional("indices", kind.BoolType, false),
	},
	Constructors: []string{"MaxPool2D"},
	Add: func(c *kind.Call) []graph.ValueID {
		o := &pool{kind: "max_pool2d", max: true}
		if !o.read(c) {
			return nil
		}
		o.kernelOf = c.NewKernel("max_pool2d", o.constants(shaders.Constants{
			"Lanes": kind.ThreadLanes, "Indices": c.ArgBool("indices"),
		}))
		if c.ArgBool("indices") {
			o.indices = c.Out(".indices", graph.I32)
			return c.AddOp(o, o.y, o.indices)
		}
		return c.AddOp(o, o.y)
	},
}

var kindAvgPool = kind.Kind{
	Name: "avg_pool2d", Doc: "The mean of each window over the two last dims.",
	Args: []kind.Arg{
		kind.Required("x", kind.F32Tensor), kind.Required("kernel_size", kind.IntsType),
		kind.Optional("stride", kind.IntsType, []int{}), kind.Optional("padding", kind.IntsType, []int{}),
		kind.Optional("ceil_mode", kind.BoolType, false),
		kind.Optional("count_include_pad", kind.BoolType, true),
		kind.Optional("divisor_override", kind.IntType, 0),
	},
	Constructors: []string{"AvgPool2D"},
	Add: func(c *kind.Call) []graph.ValueID {
		o := &pool{kind: "avg_pool2d", countPadding: c.ArgBool("count_include_pad")}
		o.divisor = c.ArgInt("divisor_override")
		if o.divisor < 0 || o.divisor > math.MaxInt32 {
			return c.Fail("divisor_override is %d, want a positive number, or 0 for none", o.divisor)
		}
		if !o.read(c) {
			return nil
		}
		constants := o.constants(shaders.Constants{
			"Lanes": kind.ThreadLanes, "CountPadding": o.countPadding, "Divisor": o.divisor,
		})
		delete(constants, "DilationH")
		delete(constants, "DilationW")
		o.kernelOf = c.NewKernel("avg_pool2d", constants)
		return c.AddOp(o, o.y)
	},
}

type pool struct {
	window
	kind          string
	x, y, indices graph.ValueID // indices is None if they are not an output
	max           bool
	countPadding  bool
	divisor       int // 0 if the sum is divided by the number of elements
	kernelOf      *graph.Kernel
}

// read reads the arguments that both kinds have.
func (o *pool) read(c *kind.Call) bool {
	o.x, o.y, o.indices, o.ceil = c.ArgTensor("x"), c.Out("", graph.F32), graph.None, c.ArgBool("ceil_mode")
	ok := true
	if rank := len(c.MaxDims(o.x)); rank != 3 && rank != 4 {
		c.Fail("x has dims %v, want rank 3 or 4", c.MaxDims(o.x))
		return false
	}
	if o.kernel, ok = sizes(c, "kernel_size", 2, 1, [2]int{}); !ok {
		return false
	}
	if o.stride, ok = sizes(c, "stride", 2, 1, o.kernel); !ok {
		return false
	}
	if o.padding, ok = sizes(c, "padding", 2, 0, [2]int{}); !ok {
		return false
	}
	o.dilation = [2]int{1, 1}
	if o.max {
		if o.dilation, ok = sizes(c, "dilation", 2, 1, o.dilation); !ok {
			return false
		}
	}
	for k := range 2 {
		if o.padding[k] > o.span(k)/2 {
			c.Fail("padding is %v, want at most half of the window (%s)", o.padding, &o.window)
			return false
		}
	}
	return true
}

func (o *pool) Spec() graph.Spec {
	s := graph.Spec{
		Kind: o.kind, Inputs: []graph.ValueID{o.x}, Outputs: []graph.ValueID{o.y},
		Attrs: map[string]any{
			"kernel_size": o.kernel[:], "stride": o.stride[:], "padding": o.padding[:], "ceil_mode": o.ceil,
		},
	}
	bind := []graph.Binding{graph.Bind("x", o.x), graph.Bind("y", o.y)}
	if o.indices != graph.None {
		s.Outputs, bind = append(s.Outputs, o.indices), append(bind, graph.Bind("indices", o.indices))
	}
	if o.max {
		s.Attrs["dilation"] = o.dilation[:]
	} else {
		s.Attrs["count_include_pad"], s.Attrs["divisor_override"] = o.countPadding, o.divisor
	}
	s.Slots = []graph.Slot{{Uses: kind.Uses(o.kernelOf, bind...)}}
	return s
}

func (o *pool) Corners(r *graph.Ranges) []graph.Corner { return o.corners(r, o.x, 2, 0) }

// outDims returns the dims of y.
func (o *pool) outDims(x []int, out *[4]int) []int {
	rank := copy(out[:], x)
	out[rank-2], out[rank-1] = o.out(x[rank-2], 0), o.out(x[rank-1], 1)
	return out[:rank]
}

func (o *pool) Plan(p *graph.Planner) error {
	x := p.Dims(o.x)
	var room [4]int
	dims := o.outDims(x, &room)
	if slices.Min(dims) < 1 {
		return p.Errorf("x has dims %v, which is too small for %s", x, &o.window)
	}
	p.SetDims(o.y, dims...)
	count, h, w := planes(dims, false)
	_, inH, inW := planes(x, false)
	n := count * h * w
	l := p.Dispatch(0, p.Vectors(n, 1, kind.ThreadLanes))
	l.Params.U32("n", n).U32("in_h", inH).U32("in_w", inW).U32("out_h", h).U32("out_w", w)
	l.Bytes = 4 * (int64(p.Numel(o.x)) + int64(n))
	l.FLOPs = int64(n) * int64(o.kernel[0]) * int64(o.kernel[1])
	if o.indices != graph.None {
		p.SetDims(o.indices, dims...)
		l.Bytes += 4 * int64(n)
	}
	return nil
}

func (o *pool) Reference(r *reference.Ref) {
	x := r.Tensor(o.x)
	var room [4]int
	dims := slices.Clone(o.outDims(x.Dims, &room))
	y, indices := reference.Zeros(dims...), reference.Zeros(dims...)
	_, h, w := planes(dims, false)
	_, inH, inW := planes(x.Dims, false)
	for i := range y.Data {
		plane := x.Data[i/(h*w)*inH*inW:][:inH*inW]
		at := [2]int{i / w % h, i % w}
		if o.max {
			y.Data[i], indices.Data[i] = o.largest(plane, at, inH, inW)
		} else {
			y.Data[i] = o.mean(plane, at, inH, inW)
		}
	}
	r.Set(o.y, y)
	if o.indices != graph.None {
		r.Set(o.indices, indices)
	}
}

func (o *pool) largest(plane []float64, at [2]int, inH, inW int) (v, index float64) {
	best := -1
	for ky := range o.kernel[0] {
		for kx := range o.kernel[1] {
			iy := at[0]*o.stride[0] + ky*o.dilation[0] - o.padding[0]
			ix := at[1]*o.stride[1] + kx*o.dilation[1] - o.padding[1]
			if iy < 0 || ix < 0 || iy >= inH || ix >= inW {
				continue
			}
			if i := iy*inW + ix; best < 0 || plane[i] > plane[best] || math.IsNaN(plane[i]) {
				best = i
			}
		}
	}
	if best < 0 {
		return math.Inf(-1), 0
	}
	return plane[best], float64(best)
}

func (o *pool) mean(plane []float64, at [2]int, inH, inW int) float64 {
	in, with, sum, n := [2]int{inH, inW}, 1, 0.0, 1
	var from, to [2]int
	for k := range 2 {
		from[k] = at[k]*o.stride[k] - o.padding[k]
		to[k] = min(from[k]+o.kernel[k], in[k]+o.padding[k])
		with *= to[k] - from[k] // number of elements of the window, padding included
		from[k], to[k] = max(from[k], 0), min(to[k], in[k])
		n *= to[k] - from[k]
	}
	for iy := from[0]; iy < to[0]; iy++ {
		for ix := from[1]; ix < to[1]; ix++ {
			sum += plane[iy*inW+ix]
		}
	}
	switch {
	case o.divisor > 0:
		n = o.divisor
	case o.countPadding:
		n = with
	}
	return sum / float64(n)
}

func (o *pool) Tolerance(r *reference.Ref, _ graph.ValueID) reference.Tolerance {
	if o.max {
		return reference.Moves{}.Tolerance(r, o.y)
	}
	n := o.kernel[0] * o.kernel[1]
	t := reference.Tolerance{
		Rel: reference.ULPs(2.5), Abs: reference.SumRoundings(n) * reference.Rounding * r.Largest(o.x),
		Why: fmt.Sprintf("%d elements summed in f32, and a division with an error of 2.5 ulp", n),
	}
	if o.divisor > 0 {
		t.Abs *= max(1, float64(n)/float64(o.divisor))
	}
	return t
}
