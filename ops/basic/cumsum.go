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

// CumSum adds cumsum along the last dim: each element of y is the sum of the elements of x up to its index.
//
//	x  [..., N], f32, i32 or u32
//	y  dims and type of x
//
// One workgroup computes each row, as many elements at a time as it has invocations.
func CumSum(b *graph.Builder, name string, x graph.ValueID) graph.ValueID {
	return kindCumSum.BuildOne(b, name, kind.Args{"x": x})
}

var kindCumSum = kind.Kind{
	Name: "cumsum", Doc: "For each element of x, the sum of the elements up to it in the last dim.",
	Args:         []kind.Arg{kind.Required("x", kind.WordTensor)},
	Constructors: []string{"CumSum"}, Add: addCumSum,
}

func addCumSum(c *kind.Call) []graph.ValueID {
	x := c.ArgTensor("x")
	if len(c.MaxDims(x)) == 0 {
		return c.Fail("x has rank 0, want at least 1")
	}
	o := &cumSum{x: x, y: c.Out("", c.DType(x)), exact: c.DType(x) != graph.F32}
	o.lanes = kind.LanesFor(c.Builder, shape.Last(c.MaxDims(x)))
	o.kernel = c.NewKernel("cumsum", shaders.Constants{"Lanes": o.lanes, "Type": c.DType(x).String()})
	return c.AddOp(o, o.y)
}

type cumSum struct {
	x, y   graph.ValueID
	exact  bool // sums of integers
	lanes  int
	kernel *graph.Kernel
}

func (o *cumSum) Spec() graph.Spec {
	return graph.Spec{
		Kind: "cumsum", Inputs: []graph.ValueID{o.x}, Outputs: []graph.ValueID{o.y},
		Slots: []graph.Slot{{Uses: kind.Uses(o.kernel, graph.Bind("x", o.x), graph.Bind("y", o.y))}},
	}
}

func (o *cumSum) Corners(r *graph.Ranges) []graph.Corner { return r.Ends(o.x) }

func (o *cumSum) Plan(p *graph.Planner) error {
	n := p.Numel(o.x)
	width := shape.Last(p.Dims(o.x))
	p.SetDims(o.y, p.Dims(o.x)...)
	l := p.Dispatch(0, p.Rows(o.lanes, width, grid.RowsOf(n, width)))
	l.Params.U32("rows", n/width).U32("width", width)
	l.Bytes, l.FLOPs = 8*int64(n), int64(n)
	return nil
}

func (o *cumSum) Reference(r *reference.Ref) {
	x := r.Tensor(o.x)
	y := reference.Zeros(x.Dims...)
	rows, _ := x.Rows()
	for i := range rows {
		sum := 0.0
		for j, v := range x.Row(i) {
			sum += v
			y.Row(i)[j] = sum
		}
	}
	r.Set(o.y, y)
}

// Tolerance has an absolute term, because the elements of a sum can cancel out.
func (o *cumSum) Tolerance(r *reference.Ref, _ graph.ValueID) reference.Tolerance {
	if o.exact {
		return reference.Exact
	}
	x := r.Tensor(o.x)
	n := shape.Last(x.Dims)
	most := math.Sqrt(float64(n)) * x.LongestRow()
	return reference.Tolerance{
		Rel: 2 * reference.Rounding, Abs: reference.SumRoundings(n) * reference.Rounding * most,
		Why: fmt.Sprintf("%d elements summed in f32", n),
	}
}
