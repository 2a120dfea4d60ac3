package ops

import (
	"fmt"
	"math"

	"gpuscope/engine/graph"
	"gpuscope/shaders"
)

// LayerNorm adds layer_norm over the last dim: y = (x - mean) / sqrt(variance + eps) * weight + bias.
//
//	x             [..., D]
//	weight, bias  [D]
//	y             dims of x
//
// A workgroup takes a row. Source: Ba, Kiros and Hinton, Layer Normalization (2016).
func LayerNorm(b *graph.Builder, name string, x, weight, bias graph.ValueID, eps float32) graph.ValueID {
	return kindLayerNorm.one(b, name, Args{"x": x, "weight": weight, "bias": bias, "eps": eps})
}

var kindLayerNorm = Kind{
	Name: "layer_norm", Doc: "y = (x - mean) / sqrt(variance + eps) * weight + bias over the last dim.",
	Args: []Arg{
		{"x", f32Tensor, nil}, {"weight", f32Tensor, nil}, {"bias", f32Tensor, nil}, {"eps", floatType, nil},
	},
	Constructors: []string{"LayerNorm"}, add: addLayerNorm,
}

func addLayerNorm(c *call) []graph.ValueID {
	x := c.tensor("x")
	o := &layerNorm{
		x: x, weight: c.tensor("weight"), bias: c.tensor("bias"), y: c.out("", graph.F32),
		eps: float32(c.float("eps")), vec: vec(c.Builder, x, -1),
	}
	o.lanes = lanesFor(c.Builder, divUp(last(c.MaxDims(x)), o.vec))
	o.kernel = c.kernel("layer_norm", shaders.Constants{"Lanes": o.lanes, "Vec": o.vec})
	return c.adds(o, o.y)
}

type layerNorm struct {
	x, weight, bias, y graph.ValueID
	eps                float32
	kernel             *graph.Kernel
	lanes, vec         int
}

func (o *layerNorm) Spec() graph.Spec {
	return graph.Spec{
		Kind: "layer_norm", Inputs: []graph.ValueID{o.x, o.weight, o.bias}, Outputs: []graph.ValueID{o.y},
		Slots: []graph.Slot{{Uses: one(o.kernel, bind("x", o.x), bind("weight", o.weight), bind("bias", o.bias), bind("y", o.y))}},
		Attrs: map[string]any{"eps": o.eps},
	}
}

func (o *layerNorm) Corners(r *graph.Ranges) []graph.Corner { return r.Ends(o.x) }

func (o *layerNorm) Plan(p *graph.Planner) error {
	width, n := p.Dim(o.x, -1), p.Numel(o.x)
	for _, v := range [2]graph.ValueID{o.weight, o.bias} {
		if d := p.Dims(v); len(d) != 1 || d[0] != width {
			return p.Errorf("weight or bias is %v, want [%d] for x %v", d, width, p.Dims(o.x))
		}
	}
	p.SetDims(o.y, p.Dims(o.x)...)
	l := p.Dispatch(0, p.Rows(o.lanes, divUp(width, o.vec), graph.RowsOf(n, width)))
	l.Params.U32("rows", n/width).U32("width", width).F32("eps", o.eps)
	l.Bytes, l.FLOPs = 4*int64(2*n+2*width), 8*int64(n)
	return nil
}

func (o *layerNorm) Reference(r *Ref) {
	x, weight, bias := r.Tensor(o.x), r.Tensor(o.weight), r.Tensor(o.bias)
	y := r.result(o.y, x.Dims...)
	rows, width := x.rows()
	for i := range r.rows(o.y, rows) {
		var mean, variance float64
		for _, v := range x.row(i) {
			mean += v / float64(width)
		}
		for _, v := range x.row(i) {
			variance += (v - mean) * (v - mean) / float64(width)
		}
		for j, v := range x.row(i) {
			y.row(i)[j] = (v-mean)/math.Sqrt(variance+float64(o.eps))*weight.Data[j] + bias.Data[j]
		}
	}
	r.Set(o.y, y)
}

// Tolerance: what is left of an element without the mean may be small beside the element.
func (o *layerNorm) Tolerance(r *Ref, _ graph.ValueID) Tolerance {
	n := last(r.Tensor(o.x).Dims)
	return Tolerance{
		Rel: summed(n) * rounding, Row: 4 * summed(n) * rounding, Abs: rounding * r.largest(o.bias),
		Why: fmt.Sprintf("mean and variance of %d elements summed in f32", n),
	}
}
