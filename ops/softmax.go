package ops

import (
	"fmt"
	"math"
	"slices"

	"gpuscope/engine/graph"
	"gpuscope/shaders"
)

// Softmax adds softmax along the last dim: y = exp(x - max x) / sum of exp(x - max x).
//
//	x  [..., N]
//	y  dims of x
//
// A workgroup takes a row and reads it twice (shaders/softmax.wgsl has the source).
func Softmax(b *graph.Builder, name string, x graph.ValueID) graph.ValueID {
	return kindSoftmax.one(b, name, Args{"x": x})
}

var kindSoftmax = Kind{
	Name: "softmax", Doc: "y = exp(x - max x) / sum of exp(x - max x) along the last dim.",
	Args:         []Arg{{"x", f32Tensor, nil}},
	Constructors: []string{"Softmax"}, add: addSoftmax,
}

func addSoftmax(c *call) []graph.ValueID {
	x := c.tensor("x")
	o := &softmax{x: x, y: c.out("", graph.F32), vec: vec(c.Builder, x, -1)}
	o.lanes = lanesFor(c.Builder, divUp(last(c.MaxDims(x)), o.vec))
	o.kernel = c.kernel("softmax", shaders.Constants{"Lanes": o.lanes, "Vec": o.vec})
	return c.adds(o, o.y)
}

type softmax struct {
	x, y       graph.ValueID
	kernel     *graph.Kernel
	lanes, vec int
}

func (o *softmax) Spec() graph.Spec {
	return graph.Spec{
		Kind: "softmax", Inputs: []graph.ValueID{o.x}, Outputs: []graph.ValueID{o.y},
		Slots: []graph.Slot{{Uses: one(o.kernel, bind("x", o.x), bind("y", o.y))}},
	}
}

func (o *softmax) Corners(r *graph.Ranges) []graph.Corner { return r.Ends(o.x) }

func (o *softmax) Plan(p *graph.Planner) error {
	dims := p.Dims(o.x)
	width, n := last(dims), p.Numel(o.x)
	p.SetDims(o.y, dims...)
	l := p.Dispatch(0, p.Rows(o.lanes, divUp(width, o.vec), graph.RowsOf(n, width)))
	l.Params.U32("rows", n/width).U32("width", width)
	l.Bytes, l.FLOPs = 8*int64(n), 5*int64(n)
	return nil
}

func (o *softmax) Reference(r *Ref) {
	x := r.Tensor(o.x)
	y := r.result(o.y, x.Dims...)
	rows, _ := x.rows()
	for i := range r.rows(o.y, rows) {
		var sum float64
		largest := slices.Max(x.row(i))
		for j, v := range x.row(i) {
			y.row(i)[j] = math.Exp(v - largest)
			sum += y.row(i)[j]
		}
		for j := range y.row(i) {
			y.row(i)[j] /= sum
		}
	}
	r.Set(o.y, y)
}

// Tolerance: of e^-d, which is d below the largest, WGSL allows 3 + 2d ulp: of the largest itself 3 at most.
func (o *softmax) Tolerance(r *Ref, _ graph.ValueID) Tolerance {
	n := last(r.Tensor(o.x).Dims)
	return Tolerance{
		Row: ulps(3) + summed(n)*rounding,
		Why: fmt.Sprintf("exp within 3 ulp of the largest, over a sum of %d in f32", n),
	}
}
