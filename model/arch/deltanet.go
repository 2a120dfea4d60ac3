package arch

import (
	"math"

	"gpuscope/engine/graph"
	"gpuscope/ops"
	"gpuscope/ops/basic"
	"gpuscope/ops/kind"
	"gpuscope/ops/recurrent"
	"gpuscope/ops/weight"
)

// deltaHeads has the sizes of linear attention with a gated delta rule.
type deltaHeads struct {
	keys, values     int // numbers of heads; keys divides values
	keyDim, valueDim int
}

// width returns the number of channels of the convolution, which processes the queries, keys and values.
func (d *deltaHeads) width() int { return 2*d.keys*d.keyDim + d.values*d.valueDim }

// deltaNet is the mixer of layers with linear attention: Yang et al., Gated Delta Networks (2024).
type deltaNet struct {
	qkv, z, alpha, beta weight.Matrix
	taps                graph.ValueID // f32 [channels, K]: weights of the convolution
	a, dt               graph.ValueID // f32 [value heads]: factor of the decay, and bias of alpha
	norm                graph.ValueID // f32 [valueDim]
	convState, state    graph.ValueID // f32 [slots, K-1, channels] and [slots, value heads, keyDim, valueDim]
	out                 weight.Matrix
}

func newDeltaNet(m *Decoder, layer int) mixer {
	blk, name, d := m.Form.Names.Of(layer), m.Form.Names, &m.Delta
	width, values := d.width(), d.values*d.valueDim
	n := &deltaNet{
		qkv:   m.W.Matrix(blk+name.deltaQKV, width, m.Dim),
		z:     m.W.Matrix(blk+name.deltaZ, values, m.Dim),
		alpha: m.W.Matrix(blk+name.deltaAlpha, d.values, m.Dim),
		beta:  m.W.Matrix(blk+name.deltaBeta, d.values, m.Dim),
		taps:  m.W.taps(blk+name.convTaps, width, m.ConvTaps),
		dt:    m.W.vector(blk+name.deltaDT, d.values), norm: m.W.vector(blk+name.deltaNorm, d.valueDim),
		convState: m.state(layer, "conv_state", m.ConvTaps-1, width),
		state:     m.state(layer, "delta_state", d.values, d.keyDim, d.valueDim),
		out:       m.W.Matrix(blk+name.deltaOut, m.Dim, values),
	}
	var factor func(float32) float32
	if m.Form.logDecay {
		factor = func(x float32) float32 { return float32(-math.Exp(float64(x))) }
	}
	n.a = m.W.changed(blk+name.deltaA, d.values, factor)
	return n
}

func (n *deltaNet) part() string { return "delta" }

// forward returns out(norm(delta rule of conv(qkv(h))) * silu(z(h))). Only the last token is needed after the
// last layer.
func (n *deltaNet) forward(m *Decoder, layer int, h graph.ValueID) graph.ValueID {
	b, d := m.Builder, &m.Delta
	qkv := ops.Linear(b, "qkv", h, n.qkv, graph.None)
	z := ops.Linear(b, "z", m.lastOf("z_last", layer, h), n.z, graph.None)
	alpha := ops.Linear(b, "alpha", h, n.alpha, graph.None)
	beta := ops.Linear(b, "beta", h, n.beta, graph.None)
	qkv = recurrent.CausalConv(b, "conv", recurrent.Conv{
		X: qkv, Weight: n.taps, State: n.convState, InGate: graph.None, OutGate: graph.None, SiLU: true,
	}, m.slots())
	y := recurrent.DeltaRule(b, "delta", recurrent.Delta{
		QKV: qkv, Alpha: alpha, Beta: beta, A: n.a, DT: n.dt, State: n.state, Eps: 1e-6,
		Tiled: m.Form.tiledHeads,
	}, m.slots())
	z = basic.View(b, "z_heads", z, kind.Fixed(1), basic.Rest, kind.Fixed(d.values), kind.Fixed(d.valueDim))
	y = recurrent.GatedNorm(b, "gated_norm", m.lastOf("delta_last", layer, y), z, n.norm, m.Eps)
	y = basic.View(b, "join", y, kind.Fixed(1), basic.Rest, kind.Fixed(d.values*d.valueDim))
	return ops.Linear(b, "out", y, n.out, graph.None)
}
