package arch

import (
	"fmt"

	"gpuscope/engine/graph"
	"gpuscope/ops/basic"
)

// mixer is the half of a layer that combines tokens at different positions, such as attention. Each
// implementation has its own file.
type mixer interface {
	// part returns a name for this half of a layer, such as "attn". The name is used in traces and in the
	// names of operators.
	part() string
	// forward adds the operators of the mixer to the graph. h is the normalized input, f32 [1, S, dim]. The
	// result has the same dims, except that the last layer returns only the row of the last token.
	forward(m *Decoder, layer int, h graph.ValueID) graph.ValueID
}

// feedForward is the half of a layer that processes each token separately. Each implementation has its own
// file.
type feedForward interface {
	// forward adds the operators to the graph. x is the input, f32 [1, S, dim], and h is the normalized
	// input. The result has the same dims.
	forward(m *Decoder, layer int, x, h graph.ValueID) graph.ValueID
}

// mixer adds the weights of a layer's mixer to the graph.
func (m *Decoder) mixer(layer int) mixer {
	if m.Recurrent != nil && m.Recurrent[layer] {
		return m.Arch.recurrent(m, layer)
	}
	return m.attention(layer)
}

// feedForward adds the weights of a layer's feed-forward half to the graph.
func (m *Decoder) feedForward(layer int) feedForward {
	if m.Experts > 0 && m.Arch.expertsBeside {
		return m.twoBranches(layer)
	}
	if m.Experts > 0 && !(m.Dense != nil && m.Dense[layer]) {
		if m.SharedFFN > 0 {
			return m.sharedExpert(layer)
		}
		return m.experts(layer)
	}
	return m.mlp(layer)
}

// layer adds layer i to the graph: a mixer and a feed-forward half. Each half normalizes its input, its
// output, or both, and adds its output to the residual stream. x is the residual stream before the layer,
// f32 [1, S, dim]. The result is the residual stream after the layer. The result of the last layer contains
// only the row of the last token.
func (m *Decoder) layer(i int, x graph.ValueID) graph.ValueID {
	name, blk := m.Form.Names, m.Form.Names.Of(i)
	norm := m.normIf(!m.Arch.NoPreNorms, blk+name.AttnNorm, m.Dim)
	mix := m.mixer(i)
	postNorm := m.normIf(m.Arch.PostNorms, blk+name.AttnPostNorm, m.Dim)
	m.Scope(fmt.Sprintf("layers.%d.%s.", i, mix.part()), i, mix.part())
	h := m.norm("norm", x, norm)
	y := m.norm("post_norm", mix.forward(m, i, h), postNorm)
	x = m.add(m.lastOf("last", i, x), y)

	norm = m.normIf(!m.Arch.NoPreNorms && !m.Arch.Parallel, blk+name.FfnNorm, m.Dim)
	ffn := m.feedForward(i)
	postNorm = m.normIf(m.Arch.PostNorms, blk+name.FfnPostNorm, m.Dim)
	m.Scope(fmt.Sprintf("layers.%d.mlp.", i), i, "mlp")
	if m.Arch.Parallel {
		h = m.lastOf("norm_last", i, h)
	} else {
		h = m.norm("norm", x, norm)
	}
	y = m.norm("post_norm", ffn.forward(m, i, x, h), postNorm)
	if m.Arch.Parallel && m.ResidualScale == 0 {
		return m.add(y, x) // linear y comes first, so that the fusion rule `residual` lets y add x
	}
	x = m.add(x, y)
	if input := m.layerInput(i); input != nil {
		x = input.forward(m, i, x)
	}
	if m.Arch.LayerScales {
		x = basic.Mul(m.Builder, "scale", x, m.W.vector(blk+name.LayerScale, 1))
	}
	return x
}
