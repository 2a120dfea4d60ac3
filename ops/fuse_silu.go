package ops

import (
	"gpuscope/engine/graph"
	"gpuscope/ops/basic"
)

// fuseSiLU computes x * sigmoid(x) in one dispatch. PyTorch's exporters write SiLU in this way.
var fuseSiLU = graph.Fusion{
	Name: "silu", Doc: "one kernel computes x * sigmoid(x)",
	Pattern: graph.Pattern{Kinds: []string{"mul"}, Of: []graph.Pattern{{Kinds: []string{"sigmoid"}}}},
	Replace: func(b *graph.Builder, m *graph.Match) graph.Operator {
		sigmoid, product := m.Ops[0].(*basic.UnaryOp), m.Last().(*basic.BinaryOp)
		if otherOperand(product, sigmoid.Y) != sigmoid.X {
			return nil
		}
		return b.Remake(m, func(name string) { basic.SiLU(b, name, sigmoid.X) })
	},
}
