package ops

import (
	"slices"

	"gpuscope/engine/graph"
	"gpuscope/ops/basic"
	"gpuscope/ops/experts"
	"gpuscope/ops/kind"
)

// fuseExpertsResidual makes the kernels that add up the results of a token's experts also add the residual
// stream.
var fuseExpertsResidual = graph.Fusion{
	Name: "experts_residual", Doc: "the sum over the experts also adds the residual",
	Pattern: graph.Pattern{
		Kinds: []string{"add"}, Of: []graph.Pattern{{Kinds: kind.Names(experts.Kinds)}},
	},
	Replace: func(b *graph.Builder, m *graph.Match) graph.Operator {
		product, ok := m.Ops[0].(interface {
			AddResidual(*graph.Builder, graph.ValueID, float32, graph.ValueID) graph.Operator
		})
		sum := m.Last().(*basic.BinaryOp)
		if !ok || !slices.Contains(m.Ops[0].Spec().Outputs, sum.B) || !sameAlways(b, sum.A, sum.B) {
			return nil
		}
		return product.AddResidual(b, sum.A, sum.Alpha, sum.Y)
	},
}
