package vision

import (
	"math"
	"slices"
	"sort"

	"gpuscope/engine/graph"
	"gpuscope/ops/kind"
	"gpuscope/ops/reference"
	"gpuscope/shaders"
)

// Upsamples lists the operators that change the height and the width of an image.
var Upsamples = []Upsample{
	{Kind: "upsample_nearest2d", doc: "Images with another height and width. Each pixel copies the nearest pixel of x."},
	{
		Kind: "upsample_bilinear2d", bilinear: true,
		doc: "Images with another height and width. Each pixel is interpolated between the four nearest pixels of x.",
	},
}

// Upsample describes an operator that changes the height and the width of an image.
type Upsample struct {
	Kind, doc string
	bilinear  bool
}

var kindsOfUpsamples = kind.Each(Upsamples, func(r *Upsample) kind.Kind {
	k := kind.Kind{
		Name: r.Kind, Doc: r.doc + " The size is output_size, or the size of x times the scales.",
		Args: []kind.Arg{
			kind.Required("x", kind.F32Tensor), kind.Optional("output_size", kind.SymIntsType, []kind.Int{}),
			kind.Optional("scale_h", kind.FloatType, 0.0), kind.Optional("scale_w", kind.FloatType, 0.0),
		},
		Add: r.add,
	}
	if r.bilinear {
		k.Args = append(k.Args, kind.Optional("align_corners", kind.BoolType, false))
	}
	return k
})

func (r *Upsample) add(c *kind.Call) []graph.ValueID {
	o := &upsample{
		Upsample: r, x: c.ArgTensor("x"), y: c.Out("", graph.F32), size: c.ArgSyms("output_size"),
		scale: [2]float64{c.ArgFloat("scale_h"), c.ArgFloat("scale_w")},
		align: r.bilinear && c.ArgBool("align_corners"),
	}
	const most = 1 << 14
	switch {
	case len(c.MaxDims(o.x)) != 4:
		return c.Fail("x has dims %v, want rank 4", c.MaxDims(o.x))
	case len(o.size) != 0 && len(o.size) != 2:
		return c.Fail("output_size has %d numbers, want a height and a width", len(o.size))
	case len(o.size) == 0 && !(min(o.scale[0], o.scale[1]) > 0 && max(o.scale[0], o.scale[1]) <= most):
		return c.Fail("output_size is empty and the scales are %v; want output_size, or two scales above 0 and up to %d",
			o.scale, most)
	}
	o.kernel = kind.NewKernelAs(c.Builder, r.Kind, "upsample", shaders.Constants{
		"Lanes": kind.ThreadLanes, "Bilinear": r.bilinear, "Align": o.align,
	})
	return c.AddOp(o, o.y)
}

type upsample struct {
	*Upsample
	x, y   graph.ValueID
	size   []kind.Int // height and width; empty if scale determines them
	scale  [2]float64
	align  bool
	kernel *graph.Kernel
}

func (o *upsample) Spec() graph.Spec {
	s := graph.Spec{
		Kind: o.Kind, Inputs: kind.Operands([]graph.ValueID{o.x}, o.size...), Outputs: []graph.ValueID{o.y},
		Slots: []graph.Slot{{Uses: kind.Uses(o.kernel, graph.Bind("x", o.x), graph.Bind("y", o.y))}},
		Attrs: map[string]any{"scales": o.scale[:]},
	}
	if len(o.size) > 0 {
		s.Attrs = map[string]any{"output_size": []any{o.size[0].Attr(), o.size[1].Attr()}}
	}
	if o.bilinear {
		s.Attrs["align_corners"] = o.align
	}
	return s
}

// scaled returns the size of an axis of y if the argument output_size is empty.
func (o *upsample) scaled(in, axis int) int { return int(math.Floor(float64(in) * o.scale[axis])) }

func (o *upsample) Corners(r *graph.Ranges) []graph.Corner {
	smallest := slices.Clone(r.Min(o.x))
	corner := graph.Corner{{Value: o.x, Dims: smallest}}
	for axis := range 2 {
		if len(o.size) > 0 {
			lo, _ := o.size[axis].Span(r)
			corner = append(corner, o.size[axis].Set(lo)...)
			continue
		}
		lo, hi := smallest[2+axis], r.Max(o.x)[2+axis]
		smallest[2+axis] += sort.Search(hi-lo, func(i int) bool { return o.scaled(lo+i, axis) > 0 })
	}
	if len(o.size) > 0 && o.size[0] == o.size[1] && len(corner) > 2 {
		corner = corner[:2]
	}
	return []graph.Corner{{}, corner}
}

// step returns the distance in x between two pixels of y.
func (o *upsample) step(in, out, axis int) float32 {
	switch {
	case o.align && out > 1:
		return float32(in-1) / float32(out-1)
	case o.align:
		return 0
	case len(o.size) == 0:
		return float32(1 / o.scale[axis])
	}
	return float32(in) / float32(out)
}

func (o *upsample) Plan(p *graph.Planner) error {
	x := p.Dims(o.x)
	dims := [4]int{x[0], x[1]}
	for axis := range 2 {
		if len(o.size) > 0 {
			dims[2+axis] = o.size[axis].At(p)
		} else {
			dims[2+axis] = o.scaled(x[2+axis], axis)
		}
		if dims[2+axis] < 1 {
			return p.Errorf("x has dims %v, and y would have dims %v, want at least one pixel", x, dims)
		}
	}
	p.SetDims(o.y, dims[:]...)
	n := graph.Numel(dims[:])
	l := p.Dispatch(0, p.Vectors(n, 1, kind.ThreadLanes))
	l.Params.U32("n", n).U32("in_h", x[2]).U32("in_w", x[3]).U32("out_h", dims[2]).U32("out_w", dims[3]).
		F32("step_h", o.step(x[2], dims[2], 0)).F32("step_w", o.step(x[3], dims[3], 1))
	l.Bytes = 4 * (int64(p.Numel(o.x)) + int64(n))
	if o.bilinear {
		l.FLOPs = 9 * int64(n)
	}
	return nil
}

func (o *upsample) Reference(r *reference.Ref) {
	x := r.Tensor(o.x)
	dims := slices.Clone(x.Dims)
	for axis := range 2 {
		if len(o.size) > 0 {
			dims[2+axis] = o.size[axis].In(r)
		} else {
			dims[2+axis] = o.scaled(dims[2+axis], axis)
		}
	}
	inH, inW, h, w := x.Dims[2], x.Dims[3], dims[2], dims[3]
	stepH, stepW := o.step(inH, h, 0), o.step(inW, w, 1)
	y := reference.Zeros(dims...)
	for i := range y.Data {
		plane := x.Data[i/(h*w)*inH*inW:][:inH*inW]
		row, col := i/w%h, i%w
		if !o.bilinear {
			y.Data[i] = plane[nearest(row, inH, stepH)*inW+nearest(col, inW, stepW)]
			continue
		}
		top, bottom, down := o.between(row, inH, stepH)
		left, right, across := o.between(col, inW, stepW)
		y.Data[i] = (1-down)*((1-across)*plane[top*inW+left]+across*plane[top*inW+right]) +
			down*((1-across)*plane[bottom*inW+left]+across*plane[bottom*inW+right])
	}
	r.Set(o.y, y)
}

// nearest returns the index in x of the pixel that pixel i of y copies. It computes in f32, as PyTorch
// does.
func nearest(i, in int, step float32) int { return min(int(float32(i)*step), in-1) }

// between returns the two pixels of x between which pixel i of y lies, and the weight of the second one.
func (o *upsample) between(i, in int, step float32) (first, second int, weight float64) {
	at := float64(i) * float64(step)
	if !o.align {
		at = max((float64(i)+0.5)*float64(step)-0.5, 0)
	}
	first = min(int(at), in-1)
	return first, min(first+1, in-1), min(at-float64(first), 1)
}

func (o *upsample) Tolerance(r *reference.Ref, _ graph.ValueID) reference.Tolerance {
	if !o.bilinear {
		return reference.Moves{}.Tolerance(r, o.y)
	}
	x := r.Tensor(o.x)
	return reference.Tolerance{
		Abs: reference.Rounding * float64(16+8*max(x.Dims[2], x.Dims[3])) * r.Largest(o.x),
		Why: "a position in x rounded to f32, and three interpolations",
	}
}
