package basic

import (
	"fmt"
	"math"
	"slices"

	"gpuscope/engine/graph"
	"gpuscope/engine/graph/grid"
	"gpuscope/ops/internal/shape"
	"gpuscope/ops/kind"
	"gpuscope/ops/reference"
	"gpuscope/shaders"
)

// Softmax adds softmax along the last dim: y = exp(x - max x) / sum of exp(x - max x).
//
//	x  [..., N]
//	y  dims of x
//
// One workgroup computes each row, which it reads twice. shaders/softmax.wgsl names the source of the method.
func Softmax(b *graph.Builder, name string, x graph.ValueID) graph.ValueID {
	return kindSoftmax.BuildOne(b, name, kind.Args{"x": x})
}

var kindSoftmax = kind.Kind{
	Name: "softmax", Doc: "y = exp(x - max x) / sum of exp(x - max x) along the last dim.",
	Args:         []kind.Arg{kind.Required("x", kind.F32Tensor)},
	Constructors: []string{"Softmax"}, Add: addSoftmax,
}

func addSoftmax(c *kind.Call) []graph.ValueID {
	x := c.ArgTensor("x")
	o := &softmax{x: x, y: c.Out("", graph.F32), Vec: kind.Vec(c.Builder, x, -1)}
	o.lanes = kind.LanesFor(c.Builder, shape.DivUp(shape.Last(c.MaxDims(x)), o.Vec))
	o.NewKernel = c.NewKernel("softmax", shaders.Constants{"Lanes": o.lanes, "Vec": o.Vec})
	return c.AddOp(o, o.y)
}

type softmax struct {
	x, y       graph.ValueID
	NewKernel  *graph.Kernel
	lanes, Vec int
}

func (o *softmax) Spec() graph.Spec {
	return graph.Spec{
		Kind: "softmax", Inputs: []graph.ValueID{o.x}, Outputs: []graph.ValueID{o.y},
		Slots: []graph.Slot{{Uses: kind.Uses(o.NewKernel, graph.Bind("x", o.x), graph.Bind("y", o.y))}},
	}
}

func (o *softmax) Corners(r *graph.Ranges) []graph.Corner { return r.Ends(o.x) }

func (o *softmax) Plan(p *graph.Planner) error {
	dims := p.Dims(o.x)
	width, n := shape.Last(dims), p.Numel(o.x)
	p.SetDims(o.y, dims...)
	l := p.Dispatch(0, p.Rows(o.lanes, shape.DivUp(width, o.Vec), grid.RowsOf(n, width)))
	l.Params.U32("rows", n/width).U32("width", width)
	l.Bytes, l.FLOPs = 8*int64(n), 5*int64(n)
	return nil
}

func (o *softmax) Reference(r *reference.Ref) {
	x := r.Tensor(o.x)
	y := r.Result(o.y, x.Dims...)
	rows, _ := x.Rows()
	for i := range r.Rows(o.y, rows) {
		var sum float64
		largest := slices.Max(x.Row(i))
		for j, v := range x.Row(i) {
			y.Row(i)[j] = math.Exp(v - largest)
			sum += y.Row(i)[j]
		}
		for j := range y.Row(i) {
			y.Row(i)[j] /= sum
		}
	}
	r.Set(o.y, y)
}

// Tolerance is relative to the largest element of the row. WGSL allows exp(-d) an error of 3 + 2d ulp, where
// d is the distance to the largest element. exp(-d) shrinks faster with d than the factor 3 + 2d grows, so
// the error is at most 3 ulp of the largest element.
func (o *softmax) Tolerance(r *reference.Ref, _ graph.ValueID) reference.Tolerance {
	n := shape.Last(r.Tensor(o.x).Dims)
	return reference.Tolerance{
		Row: reference.ULPs(3) + reference.SumRoundings(n)*reference.Rounding,
		Why: fmt.Sprintf("exp has an error of 3 ulp of the row's largest; it is divided by an f32 sum of %d elements", n),
	}
}
