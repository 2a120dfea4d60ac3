package basic

import (
	"math"
	"slices"

	"gpuscope/engine/graph"
	"gpuscope/ops/kind"
	"gpuscope/ops/reference"
	"gpuscope/shaders"
)

// ConstantPadND adds constant_pad_nd, which adds elements of one value before and after the elements of x.
//
//	x    any dims but none, any 32-bit type
//	pad  the number of elements before and after those of the last dim, then of the dim before it, and so
//	     on; a negative number removes elements
//	y    dims of x plus the numbers in pad
//
// An invocation computes one element.
func ConstantPadND(b *graph.Builder, name string, x graph.ValueID, pad []int, value float64) graph.ValueID {
	return kindPad.BuildOne(b, name, kind.Args{"x": x, "pad": pad, "value": value})
}

var kindPad = kind.Kind{
	Name: "constant_pad_nd",
	Doc: "Adds elements with a given value before and after the elements of x in the last dims. A negative " +
		"number in pad removes elements.",
	Args: []kind.Arg{
		kind.Required("x", kind.WordTensor), kind.Required("pad", kind.IntsType),
		kind.Optional("value", kind.FloatType, 0.0),
	},
	Constructors: []string{"ConstantPadND"}, Add: addPad,
}

func addPad(c *kind.Call) []graph.ValueID {
	x, list := c.ArgTensor("x"), c.ArgInts("pad")
	rank := len(c.MaxDims(x))
	if len(list)%2 != 0 || len(list) > 2*rank || rank == 0 || rank > kind.MaxRank {
		return c.Fail("pad has %d numbers and x has rank %d, want two numbers for each dim to pad",
			len(list), rank)
	}
	o := &pad{x: x, y: c.Out("", c.DType(x)), value: c.ArgFloat("value"), rank: rank}
	for k := range len(list) / 2 {
		o.before[rank-1-k], o.after[rank-1-k] = list[2*k], list[2*k+1]
	}
	const most = 1 << 24
	if len(list) > 0 && (slices.Min(list) < -most || slices.Max(list) > most) {
		return c.Fail("pad is %v, want numbers from %d to %d", list, -most, most)
	}
	switch c.DType(x) {
	case graph.F32:
		o.bits = math.Float32bits(float32(o.value))
	case graph.I32, graph.U32:
		o.bits = uint32(int64(o.value))
		if o.value = math.Trunc(o.value); o.value < math.MinInt32 || o.value > math.MaxUint32 {
			return c.Fail("value is %v, want an integer of 32 bits", o.value)
		}
	}
	o.kernel = c.NewKernel("constant_pad_nd", shaders.Constants{"Lanes": kind.ThreadLanes, "Rank": rank})
	return c.AddOp(o, o.y)
}

type pad struct {
	reference.Moves
	x, y          graph.ValueID
	before, after [kind.MaxRank]int
	rank          int
	value         float64
	bits          uint32 // value as stored in an element
	kernel        *graph.Kernel
}

func (o *pad) Spec() graph.Spec {
	return graph.Spec{
		Kind: "constant_pad_nd", Inputs: []graph.ValueID{o.x}, Outputs: []graph.ValueID{o.y},
		Slots: []graph.Slot{{Uses: kind.Uses(o.kernel, graph.Bind("x", o.x), graph.Bind("y", o.y))}},
		Attrs: map[string]any{
			"before": o.before[:o.rank], "after": o.after[:o.rank], "value": float32(o.value),
		},
	}
}

// Corners returns the largest x, and the smallest x of which some elements remain in each dim.
func (o *pad) Corners(r *graph.Ranges) []graph.Corner {
	smallest, most := slices.Clone(r.Min(o.x)), r.Max(o.x)
	for k := range smallest {
		smallest[k] = min(max(smallest[k], 1-o.before[k]-o.after[k]), most[k])
	}
	return []graph.Corner{{}, {{Value: o.x, Dims: smallest}}}
}

func (o *pad) Plan(p *graph.Planner) error {
	x := p.Dims(o.x)
	var dims, first, stride [kind.MaxRank]int
	n, apart := 1, 1
	for k := o.rank - 1; k >= 0; k-- {
		if dims[k] = x[k] + o.before[k] + o.after[k]; dims[k] < 1 {
			return p.Errorf("dim %d of x (dims %v) has no elements left after padding by %d and %d",
				k, x, o.before[k], o.after[k])
		}
		first[k], stride[k] = int(uint32(o.before[k])), apart // a negative number wraps
		n, apart = n*dims[k], apart*x[k]
	}
	p.SetDims(o.y, dims[:o.rank]...)
	l := p.Dispatch(0, p.Vectors(n, 1, kind.ThreadLanes))
	l.Params.U32("n", n).U32("value", int(o.bits))
	kind.PutDims(&l.Params, &sizeNames, dims[:o.rank])
	kind.PutDims(&l.Params, &inNames, x)
	kind.PutDims(&l.Params, &firstNames, first[:o.rank])
	kind.PutDims(&l.Params, &strideNames, stride[:o.rank])
	l.Bytes = 4 * (int64(apart) + int64(n))
	return nil
}

func (o *pad) Reference(r *reference.Ref) {
	x := r.Tensor(o.x)
	dims := slices.Clone(x.Dims)
	for k := range dims {
		dims[k] += o.before[k] + o.after[k]
	}
	y := reference.Zeros(dims...)
	for i := range y.Data {
		rest, at, stride, inside := i, 0, 1, true
		for k := o.rank - 1; k >= 0; k-- {
			j := rest%dims[k] - o.before[k]
			rest /= dims[k]
			inside = inside && j >= 0 && j < x.Dims[k]
			at, stride = at+j*stride, stride*x.Dims[k]
		}
		if y.Data[i] = o.value; inside {
			y.Data[i] = x.Data[at]
		}
	}
	r.Set(o.y, y)
}

// The names of the params that the kernel has once for each dim: the size of x, and the index in y at which x
// begins.
var inNames, firstNames = kind.PerDim("in"), kind.PerDim("first")
