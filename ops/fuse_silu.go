package ops

import (
	"gpuscope/engine/graph"
	"gpuscope/ops/basic"
)

// fuseSiLU replaces x * sigmoid(x), which exporters of PyTorch write for SiLU, by one dispatch.
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
