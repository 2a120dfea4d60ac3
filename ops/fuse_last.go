package ops

import (
	"slices"

	"gpuscope/engine/graph"
	"gpuscope/ops/basic"
	"gpuscope/ops/kind"
)

// fuseLast removes the slice that selects the last row for a linear or for a norm with a residual. Instead,
// the linear reads the last row of the complete x or residual. The norm reads the last row of the complete
// residual. If there is only one row, the operators run as without the rule, and keep their names. For a
// single row, the last layer therefore runs the same kernels as all other layers, unless linears also compute
// the norm (fuseNormSum).
var fuseLast = graph.Fusion{
	Name: "last", Doc: "a linear or a sum reads the last row directly from the tensor with all rows, so no slice is needed",
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

// ofOneRow reports whether a tensor has a single row in every step.
func ofOneRow(b *graph.Builder, v graph.ValueID) bool { return rowsIn(b.MaxDims(v)) == 1 }

// toLast changes dims such that only one row remains. It returns the index that the last row had before.
func toLast(dims []int) (row int) {
	row = rowsIn(dims) - 1
	for i := range len(dims) - 1 {
		dims[i] = 1
	}
	return row
}
