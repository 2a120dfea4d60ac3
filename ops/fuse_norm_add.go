package ops

import (
	"gpuscope/engine/graph"
	"gpuscope/ops/basic"
)

// fuseNormAdd makes the kernel of a norm also add the residual stream, in models whose layers have a norm
// after their linears. For each norm, this saves one dispatch and one level of the step. The order of
// additions stays the same, so results are bit-identical.
var fuseNormAdd = graph.Fusion{
	Name: "norm_add", Doc: "the kernel of a norm also adds the residual",
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
