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

// LayerNorm adds layer_norm over the last dim: y = (x - mean) / sqrt(variance + eps) * weight + bias.
//
//	x             [..., D]
//	weight, bias  [D]
//	y             dims of x
//
// One workgroup computes each row. Source: Ba, Kiros and Hinton, Layer Normalization (2016).
func LayerNorm(b *graph.Builder, name string, x, weight, bias graph.ValueID, eps float32) graph.ValueID {
	return kindLayerNorm.BuildOne(b, name, kind.Args{"x": x, "weight": weight, "bias": bias, "eps": eps})
}

var kindLayerNorm = kind.Kind{
	Name: "layer_norm", Doc: "y = (x - mean) / sqrt(variance + eps) * weight + bias over the last dim.",
	Args: []kind.Arg{
		kind.Required(
			"x",
			kind.F32Tensor,
		),
		kind.Required("weight", kind.F32Tensor), kind.Required("bias", kind.F32Tensor),
		kind.Required("eps", kind.FloatType),
	},
	Constructors: []string{"LayerNorm"}, Add: addLayerNorm,
}

func addLayerNorm(c *kind.Call) []graph.ValueID {
	x := c.ArgTensor("x")
	o := &LayerNormOp{
		X: x, weight: c.ArgTensor("weight"), bias: c.ArgTensor("bias"), y: c.Out("", graph.F32),
		eps: float32(c.ArgFloat("eps")), Vec: kind.Vec(c.Builder, x, -1),
	}
	o.lanes = kind.LanesFor(c.Builder, shape.DivUp(shape.Last(c.MaxDims(x)), o.Vec))
	o.NewKernel = c.NewKernel("layer_norm", shaders.Constants{"Lanes": o.lanes, "Vec": o.Vec})
	return c.AddOp(o, o.y)
}

// LayerNormOp is the operator that LayerNorm adds.
type LayerNormOp struct {
	X, weight, bias, y graph.ValueID
	eps                float32
	NewKernel          *graph.Kernel
	lanes, Vec         int
}

func (o *LayerNormOp) Spec() graph.Spec {
	return graph.Spec{
		Kind: "layer_norm", Inputs: []graph.ValueID{o.X, o.weight, o.bias}, Outputs: []graph.ValueID{o.y},
		Slots: []graph.Slot{
			{
				Uses: kind.Uses(
					o.NewKernel,
					graph.Bind("x", o.X),
					graph.Bind("weight", o.weight),
					graph.Bind("bias", o.bias),
					graph.Bind("y", o.y),
				),
			},
		},
		Attrs: map[string]any{"eps": o.eps},
	}
}

func (o *LayerNormOp) Corners(r *graph.Ranges) []graph.Corner { return r.Ends(o.X) }

func (o *LayerNormOp) Plan(p *graph.Planner) error {
	width, n := p.Dim(o.X, -1), p.Numel(o.X)
	for _, v := range [2]graph.ValueID{o.weight, o.bias} {
		if d := p.Dims(v); len(d) != 1 || d[0] != width {
			return p.Errorf("weight or bias has dims %v, want [%d] because x has dims %v",
				d, width, p.Dims(o.X))
		}
	}
	p.SetDims(o.y, p.Dims(o.X)...)
	l := p.Dispatch(0, p.Rows(o.lanes, shape.DivUp(width, o.Vec), grid.RowsOf(n, width)))
	l.Params.U32("rows", n/width).U32("width", width).F32("eps", o.eps)
	l.Bytes, l.FLOPs = 4*int64(2*n+2*width), 8*int64(n)
	return nil
}

func (o *LayerNormOp) Reference(r *reference.Ref) {
	x, weight, bias := r.Tensor(o.X), r.Tensor(o.weight), r.Tensor(o.bias)
	y := r.Result(o.y, x.Dims...)
	rows, width := x.Rows()
	for i := range r.Rows(o.y, rows) {
		var mean, variance float64
		for _, v := range x.Row(i) {
			mean += v / float64(width)
		}
		for _, v := range x.Row(i) {
			variance += (v - mean) * (v - mean) / float64(width)
		}
		for j, v := range x.Row(i) {
			y.Row(i)[j] = (v-mean)/math.Sqrt(variance+float64(o.eps))*weight.Data[j] + bias.Data[j]
		}
	}
	r.Set(o.y, y)
}

// Tolerance has a term for the largest element of the row. Subtracting the mean can make an element much
// smaller, but the rounding error stays in proportion to the size before the subtraction.
func (o *LayerNormOp) Tolerance(r *reference.Ref, _ graph.ValueID) reference.Tolerance {
	n := shape.Last(r.Tensor(o.X).Dims)
	return reference.Tolerance{
		Rel: reference.SumRoundings(n) * reference.Rounding,
		Row: 4 * reference.SumRoundings(n) * reference.Rounding,
		Abs: reference.Rounding * r.Largest(o.bias),
		Why: fmt.Sprintf("mean and variance are computed from f32 sums of %d elements", n),
	}
}
