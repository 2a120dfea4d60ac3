package arch

import (
	"fmt"

	"gpuscope/engine/graph"
	"gpuscope/ops"
	"gpuscope/ops/basic"
	"gpuscope/ops/weight"
)

// sharedExpert is the feed-forward half of layers with a mixture of experts and a shared expert, which
// processes every token. The output of the shared expert is multiplied by a weight that depends on the token.
type sharedExpert struct {
	experts *mixture
	gate    weight.Matrix // [1, dim]: the expert's weight is the sigmoid of the product with the token
	mlp     mlp
}

// sharedExpert adds the weights of a layer's experts, including the shared expert, to the graph.
func (m *Decoder) sharedExpert(layer int) *sharedExpert {
	name, blk := m.Form.Names, m.Form.Names.Of(layer)
	return &sharedExpert{
		experts: m.experts(layer), gate: m.W.rowMatrix(blk+name.SharedWeight, m.Dim),
		mlp: mlp{
			gate: m.W.Matrix(blk+name.SharedGate, m.SharedFFN, m.Dim),
			up:   m.W.Matrix(blk+name.SharedUp, m.SharedFFN, m.Dim),
			down: m.W.Matrix(blk+name.SharedDown, m.Dim, m.SharedFFN),
		},
	}
}

// forward returns experts(h) + sigmoid(gate(h)) * mlp(h).
func (f *sharedExpert) forward(m *Decoder, layer int, x, h graph.ValueID) graph.ValueID {
	b := m.Builder
	y := f.experts.forward(m, layer, x, h)
	m.Scope(fmt.Sprintf("layers.%d.shared.", layer), layer, "shared")
	share := basic.Sigmoid(b, "sigmoid", ops.Linear(b, "weight", h, f.gate, graph.None))
	shared := basic.Mul(b, "scaled", f.mlp.forward(m, layer, x, h), share)
	m.Scope(fmt.Sprintf("layers.%d.mlp.", layer), layer, "mlp")
	return basic.Add(b, "shared", shared, y, 1)
}
