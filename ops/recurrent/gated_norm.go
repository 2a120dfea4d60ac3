package recurrent

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

// GatedNorm adds gated_rms_norm over the last dim: y = x / sqrt(mean(x^2) + eps) * weight * silu(gate).
//
//	x, gate  [..., D], same dims
//	weight   [D]
//	y        dims of x
//
// One workgroup computes each row. Source: Yang and others, Gated Delta Networks (2024).
func GatedNorm(b *graph.Builder, name string, x, gate, weight graph.ValueID, eps float32) graph.ValueID {
	return kindGatedNorm.BuildOne(b, name, kind.Args{"x": x, "gate": gate, "weight": weight, "eps": eps})
}

var kindGatedNorm = kind.Kind{
	Name: "gated_rms_norm",
	Doc:  "y = x / sqrt(mean(x^2) + eps) * weight * gate / (1 + exp(-gate)) over the last dim.",
	Args: []kind.Arg{
		kind.Required("x", kind.F32Tensor), kind.Required("gate", kind.F32Tensor),
		kind.Required("weight", kind.F32Tensor), kind.Required("eps", kind.FloatType),
	},
	Constructors: []string{"GatedNorm"}, Add: addGatedNorm,
}

func addGatedNorm(c *kind.Call) []graph.ValueID {
	x, eps := c.ArgTensor("x"), float32(c.ArgFloat("eps"))
	o := &gatedNorm{
		x: x, gate: c.ArgTensor("gate"), weight: c.ArgTensor("weight"), y: c.Out("", graph.F32), eps: eps,
		width: shape.Last(c.MaxDims(x)), vec: kind.Vec(c.Builder, x, -1),
	}
	if dims := c.MaxDims(o.weight); len(c.MaxDims(x)) == 0 || c.MinDims(x)[len(c.MinDims(x))-1] != o.width ||
		!slices.Equal(dims, []int{o.width}) {
		return c.Fail("x has dims %v and weight has dims %v, want x [..., D] and weight [D], with a fixed D",
			c.MaxDims(x), dims)
	}
	if !(eps >= 0) { // also refuses NaN
		return c.Fail("eps is %g, want at least 0", eps)
	}
	o.lanes = kind.LanesFor(c.Builder, o.width/o.vec)
	o.kernel = c.NewKernel("gated_rms_norm", shaders.Constants{
		"Lanes": o.lanes, "Vec": o.vec, "Width": o.width, "Eps": eps,
	})
	return c.AddOp(o, o.y)
}

type gatedNorm struct {
	x, gate, weight, y graph.ValueID
	eps                float32
	width, lanes, vec  int
	kernel             *graph.Kernel
}

func (o *gatedNorm) Spec() graph.Spec {
	return graph.Spec{
		Kind: "gated_rms_norm", Inputs: []graph.ValueID{o.x, o.gate, o.weight},
		Outputs: []graph.ValueID{o.y},
		Slots: []graph.Slot{{Uses: kind.Uses(o.kernel, graph.Bind("x", o.x), graph.Bind("gate", o.gate),
			graph.Bind("weight", o.weight), graph.Bind("y", o.y))}},
		Attrs: map[string]any{"eps": o.eps},
	}
}

func (o *gatedNorm) Corners(r *graph.Ranges) []graph.Corner { return r.Ends(o.x, o.gate) }

func (o *gatedNorm) Plan(p *graph.Planner) error {
	dims, n := p.Dims(o.x), p.Numel(o.x)
	if !slices.Equal(p.Dims(o.gate), dims) {
		return p.Errorf("x has dims %v and gate has dims %v, want the same dims", dims, p.Dims(o.gate))
	}
	p.SetDims(o.y, dims...)
	l := p.Dispatch(0, p.Rows(o.lanes, o.width/o.vec, grid.RowsOf(n, o.width)))
	l.Params.U32("rows", n/o.width)
	l.Bytes, l.FLOPs = 4*int64(3*n+o.width), 8*int64(n)
	return nil
}

func (o *gatedNorm) Reference(r *reference.Ref) {
	x, gate, weight := r.Tensor(o.x), r.Tensor(o.gate), r.Tensor(o.weight)
	y := r.Result(o.y, x.Dims...)
	rows, width := x.Rows()
	for i := range r.Rows(o.y, rows) {
		row := x.Row(i)
		scale := 1 / math.Sqrt(reference.Dot(row, row)/float64(width)+float64(o.eps))
		for j, v := range row {
			g := gate.Row(i)[j]
			y.Row(i)[j] = v * scale * weight.Data[j] * g / (1 + math.Exp(-g))
		}
	}
	r.Set(o.y, y)
}

func (o *gatedNorm) Tolerance(r *reference.Ref, _ graph.ValueID) reference.Tolerance {
	norm := math.Sqrt(float64(o.width)) * r.Largest(o.weight) // largest possible result of the norm
	return reference.Tolerance{
		Rel: reference.SumRoundings(o.width)*reference.Rounding + reference.ExpTolerance.Rel,
		Abs: 0x1p-126 * r.Largest(o.gate) * norm, // a quotient g / d with d above 2^126 may be flushed to 0
		Why: fmt.Sprintf("squares are summed in f32 over %d elements; %s", o.width,
			reference.ExpTolerance.Why),
	}
}
