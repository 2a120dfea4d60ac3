package ops

import (
	"gpuscope/engine/graph"
	"gpuscope/ops/basic"
)

// fuseNormAdd takes the sum with the residual stream into the norm before it, where layers have one after
// their products: a dispatch and a level less for each. The sums are taken in the same order, so that no bit
// changes.
var fuseNormAdd = graph.Fusion{
	Name: "norm_add", Doc: "a sum with a norm is taken in by its kernel",
	Pattern: graph.Pattern{
		Kinds: []string{"add"}, Of: []graph.Pattern{{Kinds: []string{kindRMSNorm.Name}}},
	},
	Replace: func(b *graph.Builder, m *graph.Match) graph.Operator {
		norm, sum := m.Ops[0].(*rmsNorm), m.Last().(*basic.BinaryOp)
		residual := otherOperand(sum, norm.y)
		if norm.residual != graph.None || residual == norm.y || sum.Alpha != 1 ||
			!rowsAlike(b, norm.y, residual) {
			return nil
		}
		fused := *norm
		fused.residual, fused.y = residual, sum.Y
		fused.makeKernel(b)
		return &fused
	},
}
