package arch

import (
	"gpuscope/engine/graph"
	"gpuscope/ops"
	"gpuscope/ops/recurrent"
	"gpuscope/ops/weight"
)

// shortConv is the mixer of layers with a short convolution between two gates.
type shortConv struct {
	b, c, x weight.Matrix // compute the gate before and the gate after the convolution, and its input
	taps    graph.ValueID // f32 [dim, K]
	state   graph.ValueID // f32 [slots, K-1, dim]
	out     weight.Matrix
}

func newShortConv(m *Decoder, layer int) mixer {
	blk, name := m.Form.Names.Of(layer), m.Form.Names
	in := m.W.matrices(true, blk, name.convIn, m.Dim, rows{n: m.Dim}, rows{n: m.Dim}, rows{n: m.Dim})
	return &shortConv{
		b: in[0], c: in[1], x: in[2], taps: m.W.taps(blk+name.convTaps, m.Dim, m.ConvTaps),
		state: m.state(layer, "conv_state", m.ConvTaps-1, m.Dim),
		out:   m.W.Matrix(blk+name.convOut, m.Dim, m.Dim),
	}
}

func (s *shortConv) part() string { return "conv" }

// forward returns out(c(h) * conv(b(h) * x(h))).
func (s *shortConv) forward(m *Decoder, layer int, h graph.ValueID) graph.ValueID {
	b := m.Builder
	y := recurrent.CausalConv(b, "conv", recurrent.Conv{
		InGate: ops.Linear(b, "b", h, s.b, graph.None), OutGate: ops.Linear(b, "c", h, s.c, graph.None),
		X: ops.Linear(b, "x", h, s.x, graph.None), Weight: s.taps, State: s.state,
	}, m.slots())
	return ops.Linear(b, "out", m.lastOf("conv_last", layer, y), s.out, graph.None)
}
