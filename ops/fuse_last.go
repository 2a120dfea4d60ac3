package ops

import (
	"slices"

	"gpuscope/engine"
)

// fuseLast has a linear make the last row alone where nothing reads the others, or a norm that a residual is
// added to: what cuts that row out is gone, and of a prompt one row is made in place of all. At one row
// nothing is different, not even the name, so that its layer is like all others there.
var fuseLast = engine.Fusion{
	Name: "last", Doc: "a linear or sum of which the last row alone is read makes that alone",
	Pattern: engine.Pattern{
		Kinds: []string{"slice"},
		Of:    []engine.Pattern{{Kinds: slices.Concat(linearKinds, []string{kindRMSNorm.Name})}},
	},
	Unnamed: true,
	Replace: func(b *engine.Builder, m *engine.Match) engine.Operator {
		cut := m.Last().(*gather)
		dims := b.MaxDims(cut.x)
		columns := len(dims) - 1
		if cut.ends != [2]Int{Fixed(-1), Fixed(ToEnd)} || cut.exact || cut.axis == columns ||
			dims[cut.axis] != product(dims[:columns]) || b.RouteAsked(cut.x) {
			return nil
		}
		switch before := m.Ops[0].(type) {
		case *linear:
			if before.shapes[0].batch != 1 || before.gated != nil {
				return nil
			}
			fused := *before
			fused.last, fused.y = true, cut.y
			fused.plan(b.Limits())
			fused.makeKernels(b)
			return &fused
		case *rmsNorm:
			if before.residual == engine.None {
				return nil
			}
			fused := *before
			fused.last, fused.y = true, cut.y
			return &fused
		}
		return nil
	},
}

// lastDims are those of the last row of a tensor that has one dim of rows.
func lastDims(dims []int) []int {
	return append(slices.Repeat([]int{1}, len(dims)-1), last(dims))
}
