package basic

import (
	"fmt"
	"math"

	"gpuscope/engine/graph"
	"gpuscope/engine/graph/grid"
	"gpuscope/ops/internal/shape"
	"gpuscope/ops/kind"
	"gpuscope/ops/reference"
	"gpuscope/shaders"
)

// Reductions lists the operators that reduce adjacent dims. Kernels, references and tests are all derived
// from the rows of this table.
var Reductions = []Reduction{
	{
		Kind: "amax", doc: "The largest element over adjacent dims, or NaN if an element is NaN",
		start: infinityWGSL("0xff800000u"), join: largerWGSL, needs: isNaNWGSL,
		f: func(list []float64) float64 { return ofAll(math.Max, list) }, Also: oddNumbers,
	},
	{
		Kind: "amin", doc: "The smallest element over adjacent dims, or NaN if an element is NaN",
		start: infinityWGSL("0x7f800000u"), join: smallerWGSL, needs: isNaNWGSL,
		f: func(list []float64) float64 { return ofAll(math.Min, list) }, Also: oddNumbers,
	},
	{
		Kind: "mean", of: "Mean", doc: "The mean over adjacent dims",
		start: "0.0", join: "u + v", rounds: true, mean: true,
		f: func(list []float64) float64 { return total(list) / float64(len(list)) },
	},
	{
		Kind: "sum", of: "Sum", doc: "The sum over adjacent dims", start: "0.0", join: "u + v",
		rounds: true, f: total,
	},
}

// Reduction describes an operator that reduces adjacent dims.
type Reduction struct {
	Kind string
	of   string // name of the Go constructor, or empty
	doc  string
	// start is a WGSL expression for the result of reducing no elements, such as 0 for a sum. join is a WGSL
	// expression that combines two partial results u and v; their order does not matter. needs is the WGSL
	// source of the functions that join calls. All three use the placeholders that UnaryRow explains.
	start, join, needs string
	rounds             bool // join rounds its result; if false, the result is always one of the elements
	mean               bool // the result is divided by the number of elements
	f                  func(list []float64) float64
	Also               []float64 // additional element values that the tests use
}

var oddNumbers = []float64{math.Inf(1), math.Inf(-1), math.NaN()}

// infinityWGSL returns a WGSL expression for the float with these bits. The expression uses a param, because
// WGSL does not allow an infinite constant.
func infinityWGSL(bits string) string { return "bitcast<f32>(" + bits + " + min(params.rows, 0u))" }

func total(list []float64) (sum float64) {
	for _, v := range list {
		sum += v
	}
	return sum
}

func ofAll(f func(a, b float64) float64, list []float64) float64 {
	y := list[0]
	for _, v := range list {
		y = ofNumbers(f, y, v)
	}
	return y
}

// Sum adds sum, which adds up the elements of x along some dims. `axes` lists these dims, which must be
// adjacent. If `keepDims` is true, the dims stay in y with size 1. Otherwise y does not have them.
//
//	x  any dims
//	y  dims of x without the axes
//
// If axes are the last dims, one workgroup sums each row of x. Otherwise one invocation sums each column.
func Sum(b *graph.Builder, name string, x graph.ValueID, axes []int, keepDims bool) graph.ValueID {
	return member("sum").BuildOne(b, name, kind.Args{"x": x, "dims": axes, "keepdim": keepDims})
}

// Mean adds mean: the result of Sum, divided by the number of summed elements.
func Mean(b *graph.Builder, name string, x graph.ValueID, axes []int, keepDims bool) graph.ValueID {
	return member("mean").BuildOne(b, name, kind.Args{"x": x, "dims": axes, "keepdim": keepDims})
}

var kindsOfReductions = kind.Each(Reductions, func(r *Reduction) kind.Kind {
	return kind.Kind{
		Name: r.Kind, Doc: r.doc + ".", Constructors: Constructors(r.of),
		Args: []kind.Arg{
			kind.Required("x", kind.F32Tensor),
			kind.Required("dims", kind.IntsType),
			kind.Optional("keepdim", kind.BoolType, false),
		},
		Add: r.add,
	}
})

func (r *Reduction) add(c *kind.Call) []graph.ValueID {
	x, axes := c.ArgTensor("x"), c.ArgInts("dims")
	dims := c.MaxDims(x)
	summed := make([]bool, len(dims))
	o := &reduce{Reduction: r, x: x, keepDims: c.ArgBool("keepdim"), first: len(summed), count: len(axes)}
	for _, a := range axes {
		axis, ok := c.Axis(x, a)
		if !ok {
			return nil
		}
		summed[axis] = true
		o.first = min(o.first, axis)
	}
	for k := range axes {
		if o.first+k >= len(summed) || !summed[o.first+k] {
			return c.Fail("%s over dims %v of %s: the dims are not adjacent. Permute the tensor first",
				r.Kind, axes, c.Name(x))
		}
	}
	if len(axes) == 0 {
		return c.Fail("%s: the list of dims is empty, want at least one dim", r.Kind)
	}
	o.y = c.Out("", graph.F32)
	if o.rows = o.first+o.count == len(summed); o.rows {
		o.Vec = InnerVec(c.Builder, x, o.first-1)
		o.lanes = kind.LanesFor(c.Builder, shape.DivUp(shape.Product(dims[o.first:]), o.Vec))
		o.NewKernel = r.NewKernel(c, "rows", 1, shaders.Constants{"Lanes": o.lanes, "Vec": o.Vec})
	} else {
		o.Vec, o.lanes = InnerVec(c.Builder, x, o.first+o.count-1), kind.ThreadLanes
		o.NewKernel = r.NewKernel(c, "columns", o.Vec, shaders.Constants{"Lanes": o.lanes, "Vec": o.Vec})
	}
	return c.AddOp(o, o.y)
}

// NewKernel returns a kernel that reduces rows if the argument `what` is "rows", or columns if it is
// "columns". Each invocation loads vec adjacent elements at a time.
func (r *Reduction) NewKernel(c *kind.Call, what string, vec int, constants shaders.Constants) *graph.Kernel {
	constants["Op"], constants["Start"] = r.Kind, shaders.Text(r.start)
	constants["Join"], constants["Needs"] = OfElements(r.join, vec), OfElements(r.needs, vec)
	return kind.NewKernelAs(c.Builder, r.Kind+"_"+what, "reduce_"+what, constants)
}

type reduce struct {
	*Reduction
	x, y         graph.ValueID
	first, count int // first reduced dim and number of reduced dims
	keepDims     bool
	rows         bool // the reduced dims are the last dims
	NewKernel    *graph.Kernel
	lanes, Vec   int
}

func (o *reduce) Spec() graph.Spec {
	axes := make([]int, o.count)
	for k := range axes {
		axes[k] = o.first + k
	}
	return graph.Spec{
		Kind: o.Kind, Inputs: []graph.ValueID{o.x}, Outputs: []graph.ValueID{o.y},
		Slots: []graph.Slot{{Uses: kind.Uses(o.NewKernel, graph.Bind("x", o.x), graph.Bind("y", o.y))}},
		Attrs: map[string]any{"dims": axes, "keepdim": o.keepDims},
	}
}

func (o *reduce) Corners(r *graph.Ranges) []graph.Corner { return r.Ends(o.x) }

func (o *reduce) Plan(p *graph.Planner) error {
	dims := p.Dims(o.x)
	outer, n, inner := shape.Product(dims[:o.first]), shape.Product(dims[o.first:o.first+o.count]),
		shape.Product(dims[o.first+o.count:])
	factor := float32(1)
	if o.mean {
		factor = 1 / float32(n)
	}
	var l *graph.Launch
	if o.rows {
		l = p.Dispatch(0, p.Rows(o.lanes, shape.DivUp(n, o.Vec), grid.RowsOf(outer*n, n)))
		l.Params.U32("rows", outer).U32("width", n).F32("factor", factor)
	} else {
		l = p.Dispatch(0, p.Vectors(outer*inner, o.Vec, o.lanes))
		l.Params.U32("n", outer*inner/o.Vec).U32("rows", n).U32("width", inner/o.Vec).F32("factor", factor)
	}
	l.Bytes, l.FLOPs = 4*int64(outer)*int64(n+1)*int64(inner), int64(p.Numel(o.x))
	var out [kind.MaxRank]int
	rank := 0
	for k, d := range dims {
		switch {
		case k < o.first || k >= o.first+o.count:
			out[rank] = d
		case o.keepDims:
			out[rank] = 1
		default:
			continue
		}
		rank++
	}
	p.SetDims(o.y, out[:rank]...)
	return nil
}

func (o *reduce) Reference(r *reference.Ref) {
	x := r.Tensor(o.x)
	var dims []int
	for k, d := range x.Dims {
		if k < o.first || k >= o.first+o.count {
			dims = append(dims, d)
		} else if o.keepDims {
			dims = append(dims, 1)
		}
	}
	y := reference.Zeros(dims...)
	n, inner := shape.Product(x.Dims[o.first:o.first+o.count]), shape.Product(x.Dims[o.first+o.count:])
	list := make([]float64, n)
	for i := range y.Data {
		for j := range list {
			list[j] = x.Data[(i/inner*n+j)*inner+i%inner]
		}
		y.Data[i] = o.f(list)
	}
	r.Set(o.y, y)
}

// Tolerance has an absolute term, because a sum of large elements with different signs can be close to 0.
func (o *reduce) Tolerance(r *reference.Ref, _ graph.ValueID) reference.Tolerance {
	if !o.rounds {
		return reference.Moves{}.Tolerance(r, o.y)
	}
	x := r.Tensor(o.x)
	n := shape.Product(x.Dims[o.first : o.first+o.count])
	t := reference.Tolerance{
		Rel: reference.SumRoundings(n) * reference.Rounding,
		Abs: math.Sqrt(float64(n)) * reference.SumRoundings(n) * reference.Rounding * r.Largest(o.x),
		Why: fmt.Sprintf("%d elements summed in f32", n),
	}
	if o.mean {
		t.Abs /= float64(n)
	}
	return t
}
