package vision

import (
	"gpuscope/engine/graph"
	"gpuscope/ops/kind"
	"gpuscope/ops/reference"
	"gpuscope/shaders"
)

// GridPriors adds grid_priors: the positions of the pixels of x, row by row. The position of a pixel is
// (column + offset) * step and (row + offset) * step. Only the dims of x are read.
//
//	x  [..., H, W]
//	y  [H*W, 2]
func GridPriors(b *graph.Builder, name string, x graph.ValueID, step int, offset float64) graph.ValueID {
	return kindPriors.BuildOne(b, name, kind.Args{"x": x, "stride": step, "offset": offset})
}

var kindPriors = kind.Kind{
	Name: "grid_priors", Doc: "The positions (column + offset, row + offset) * stride of the pixels of x.",
	Args: []kind.Arg{
		kind.Required("x", kind.WordTensor), kind.Required("stride", kind.IntType),
		kind.Optional("offset", kind.FloatType, 0.5),
	},
	Constructors: []string{"GridPriors"}, Add: addPriors,
}

func addPriors(c *kind.Call) []graph.ValueID {
	o := &priors{
		x: c.ArgTensor("x"), y: c.Out("", graph.F32), step: c.ArgInt("stride"), offset: c.ArgFloat("offset"),
	}
	if rank := len(c.MaxDims(o.x)); rank < 2 {
		return c.Fail("x has rank %d, want at least 2", rank)
	}
	if o.step < -largestStep || o.step > largestStep {
		return c.Fail("stride is %d, want %d to %d", o.step, -largestStep, largestStep)
	}
	o.kernel = c.NewKernel("grid_priors", shaders.Constants{"Lanes": kind.ThreadLanes})
	return c.AddOp(o, o.y)
}

type priors struct {
	x, y   graph.ValueID
	step   int
	offset float64
	kernel *graph.Kernel
}

func (o *priors) Spec() graph.Spec {
	return graph.Spec{
		Kind: "grid_priors", Inputs: []graph.ValueID{o.x}, Outputs: []graph.ValueID{o.y},
		Slots: []graph.Slot{{Uses: kind.Uses(o.kernel, graph.Bind("y", o.y))}},
		Attrs: map[string]any{"stride": o.step, "offset": o.offset},
	}
}

func (o *priors) Corners(r *graph.Ranges) []graph.Corner { return r.Ends(o.x) }

func (o *priors) Plan(p *graph.Planner) error {
	h, w := p.Dim(o.x, -2), p.Dim(o.x, -1)
	p.SetDims(o.y, h*w, 2)
	l := p.Dispatch(0, p.Vectors(2*h*w, 1, kind.ThreadLanes))
	l.Params.U32("n", 2*h*w).U32("width", w).F32("stride", float32(o.step)).F32("offset", float32(o.offset))
	l.Bytes, l.FLOPs = 8*int64(h)*int64(w), 4*int64(h)*int64(w)
	return nil
}

func (o *priors) Reference(r *reference.Ref) {
	dims := r.Tensor(o.x).Dims
	h, w := dims[len(dims)-2], dims[len(dims)-1]
	y := reference.Zeros(h*w, 2)
	for i := range h * w {
		y.Row(i)[0] = (float64(i%w) + o.offset) * float64(o.step)
		y.Row(i)[1] = (float64(i/w) + o.offset) * float64(o.step)
	}
	r.Set(o.y, y)
}

func (o *priors) Tolerance(r *reference.Ref, _ graph.ValueID) reference.Tolerance {
	return reference.Tolerance{
		Rel: 4 * reference.Rounding, Abs: 4 * reference.Rounding * r.Largest(o.y),
		Why: "two roundings to f32",
	}
}
