package ops

import (
	"slices"

	"gpuscope/engine/graph"
	"gpuscope/ops/internal/shape"
	"gpuscope/ops/kind"
	"gpuscope/ops/weight"
	"gpuscope/shaders"
)

// makeKernels makes the kernels of all routes that are not ruled out.
func (o *linear) makeKernels(b *graph.Builder) {
	o.kernels = make([]*graph.Kernel, len(o.Routes))
	for r := range o.Routes {
		if o.Routes[r].UpTo > 0 {
			o.kernels[r] = o.NewKernel(b, r)
		}
	}
	if o.gated != nil {
		o.join = o.gated.NewKernel(b, 4, o.cols()/4)
	}
	if o.splits() {
		o.sum = kind.NewKernel(b, "linear_sums", shaders.Constants{
			"Lanes": kind.ThreadLanes, "Vec": o.sumVec(), "Bias": o.bias != graph.None,
			"Residual": o.residual != graph.None,
		})
	}
}

// gatedBy returns two strings if the kernel of a route computes act(gate) * up: the name of the activation,
// and the WGSL expression that computes act(gate) * up for `vec` elements at a time. Otherwise both are
// empty.
func (o *linear) gatedBy(route, vec int) (string, shaders.Text) {
	if !o.joins(route) {
		return "", ""
	}
	return o.gated.Act.Kind, o.gated.Expr(vec, "up")
}

func (o *linear) NewKernel(b *graph.Builder, route int) *graph.Kernel {
	s, name := &o.shapes[route], o.w.Format.KindName("linear")+"_"+o.Routes[route].Name
	c := o.w.Format.AddConstants(b, shaders.Constants{
		"Bias": o.bias != graph.None && !splitRoute(route), "Residual": o.takesResidual(route),
	})
	if s.tile > 0 {
		c["Tile"], c["Teams"], c["Quads"] = s.tile, s.teams, s.quads
		c["Even"], c["Partial"] = o.w.Cols%(4*s.quads*s.teams) == 0, !o.w.InGroupsOf8()
		c["Gated"], c["Expr"] = o.gatedBy(route, 4)
		c["Split"], c["Experts"] = splitRoute(route), 0
		return kind.NewKernelAs(b, name, "linear_tiled", c)
	}
	c["Last"], c["Shared"], c["N"] = route == linearLast, o.shared(route), o.knownRows(route)
	ragged := func(p weight.Part) bool { return p.Rows%s.rows != 0 }
	c["Lanes"], c["Rows"], c["Batch"], c["Eights"] = s.lanes, s.rows, s.batch, s.eights
	c["Spread"], c["Norm"], c["Eps"], c["Given"] = false, false, float32(0), 0
	c["Sum"], c["SpreadStream"], c["LastOfStream"] = 0, false, false
	c["Made"], c["SpreadMade"] = 0, false // Made is the number of workgroups that store the sum
	if o.makesSum(route) {
		c["Made"], c["SpreadMade"] = min(shape.DivUp(o.cols(), s.rows), o.w.Cols/spreadColumns), o.made != nil
	}
	c["HeadQuads"], c["Run"] = 0, 0
	if o.takesLeft(route) {
		o.before.specialize(route, c, s.chunk())
	}
	// Number of chunks of y if the kernel computes a part of the next norm (Next) or an interleaved row
	// (Leaves), else 0.
	c["Next"], c["Leaves"] = 0, 0
	if o.doesNext(route) {
		c["Next"] = o.cols() / spreadColumns
	}
	if o.leaves(route) {
		c["Leaves"] = o.cols() / spreadColumns
	}
	c["Groups"] = 1
	if g := o.w.Format.Group; g > 0 {
		c["Groups"] = max(1, s.chunk()/g)
	}
	c["Gated"], c["Expr"] = o.gatedBy(route, 1)
	c["Chunks"], c["Ragged"] = o.w.Cols/s.chunk(), slices.ContainsFunc(o.parts, ragged)
	return kind.NewKernelAs(b, name, "linear_gemv", c)
}
