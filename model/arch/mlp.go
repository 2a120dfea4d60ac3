package arch

import (
	"gpuscope/engine/graph"
	"gpuscope/ops"
	"gpuscope/ops/weight"
)

// mlp is the feed-forward half of layers that apply the same gated MLP to all tokens.
type mlp struct {
	gate, up, down weight.Matrix
}

func (m *Decoder) mlp(layer int) *mlp {
	name, blk, n := m.Form.Names, m.Form.Names.Of(layer), m.FFN[layer]
	both := m.W.matrices(m.Arch.Fused || m.Arch.FusedMLP, blk, name.GateUp, m.Dim, rows{name.Gate, n},
		rows{name.Up, n})
	return &mlp{gate: both[0], up: both[1], down: m.W.Matrix(blk+name.Down, m.Dim, n)}
}

// forward returns down(act(gate(h)) * up(h)), where act is the activation function of the architecture.
func (f *mlp) forward(m *Decoder, _ int, _, h graph.ValueID) graph.ValueID {
	b := m.Builder
	gate := ops.Linear(b, "gate", h, f.gate, graph.None)
	up := ops.Linear(b, "up", h, f.up, graph.None)
	h = m.Arch.Gate.join(b, m.Arch.Gate.Name, gate, up)
	return ops.Linear(b, "down", h, f.down, graph.None)
}
