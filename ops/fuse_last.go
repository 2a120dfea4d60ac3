package ops

import (
	"slices"

	"gpuscope/engine/graph"
	"gpuscope/ops/basic"
	"gpuscope/ops/kind"
)

// fuseLast has a linear take the last row out of what it reads, as x or as its residual, or a norm that a
// residual is added to out of that: what cuts the row out is gone. At one row nothing is different, not even
// the name, so that the layer is like all others there, unless products take that norm in (fuseNormSum).
var fuseLast = graph.Fusion{
	Name: "last", Doc: "a linear or sum that reads the last row alone takes it from where all are",
	Pattern: graph.Pattern{
		Kinds: slices.Concat(linearKinds, []string{kindRMSNorm.Name}),
		Of:    []graph.Pattern{{Kinds: []string{"slice"}}},
	},
	Unnamed: true,
	Replace: func(b *graph.Builder, m *graph.Match) graph.Operator {
		cut := m.Ops[0].(*basic.GatherOp)
		dims := b.MaxDims(cut.X)
		if cut.Ends != [2]kind.Int{kind.Fixed(-1), kind.Fixed(basic.ToEnd)} || cut.Exact ||
			cut.Axis == len(dims)-1 ||
			dims[cut.Axis] != rowsIn(dims) {
			return nil
		}
		switch o := m.Last().(type) {
		case *linear:
			fused := *o
			switch {
			case o.shapes[linearGEMV].batch != 1 || o.gated != nil || b.RouteAsked(o.y):
				return nil
			case o.x == cut.Y && (o.residual == graph.None || ofOneRow(b, o.residual)):
				fused.x = cut.X
			case o.residual == cut.Y && ofOneRow(b, o.x):
				fused.residual = cut.X
			default:
				return nil
			}
			fused.Last = true
			fused.plan(b.Limits())
			fused.makeKernels(b)
			return &fused
		case *rmsNorm:
			if o.residual != cut.Y || !ofOneRow(b, o.x) {
				return nil
			}
			fused := *o
			fused.Last, fused.residual = true, cut.X
			return &fused
		}
		return nil
	},
}

// ofOneRow says whether a tensor is a single row always.
func ofOneRow(b *graph.Builder, v graph.ValueID) bool { return rowsIn(b.MaxDims(v)) == 1 }

// toLast makes dims of some rows those of the last one, and says which it is.
func toLast(dims []int) (row int) {
	row = rowsIn(dims) - 1
	for i := range len(dims) - 1 {
		dims[i] = 1
	}
	return row
}
