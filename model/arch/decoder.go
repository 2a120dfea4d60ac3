package arch

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"gpuscope/engine/graph"
	"gpuscope/model/network"
	"gpuscope/model/sample"
	"gpuscope/ops"
	"gpuscope/ops/basic"
	"gpuscope/ops/kind"
)

// Decoder builds the graph of a decoder-only transformer from its configuration. The field Arch describes
// what differs between model families. One graph serves both prefill and decode: its input of shape [1, S]
// takes any number of tokens S from 1 to the largest chunk, and the position is a SymInt.
type Decoder struct {
	*graph.Builder
	Config
	Context int
	KV      graph.DType // element type of the KV cache
	W       *Weights
	// recurrentState is the State of recurrent layers, or nil if all layers have attention.
	recurrentState *network.Recurrent

	pos    graph.ValueID
	tokens graph.ValueID
	rotate rotary // applies RoPE to queries and keys, for the positions of the step
	// rotateLocal is used instead of rotate in layers with a sliding window. It equals rotate if all layers
	// have the same rotation.
	rotateLocal rotary
	zeros       graph.ValueID         // f32 [dim]: the bias of norms that subtract the mean
	unweighted  map[int]graph.ValueID // results of the method ones, by number of elements
	attentions  map[int]*attention    // by layer
	inputs      graph.ValueID         // inputs of all layers, or None; see layerInputs
	// queryScales holds the factors of the queries at all positions of the step. lastQueryScale holds the
	// factor at the last of these positions. Both are None if queries have no factors.
	queryScales, lastQueryScale graph.ValueID
	// expertCounts has one i32 [experts] for each layer with experts: how many tokens of the step were routed
	// to each expert.
	expertCounts []graph.ValueID
}

// Build builds the graph for steps of at most `maxChunk` tokens. `told` is the number of candidates for the
// next token that each step reports; 0 means that a step reports only the picked token.
func (m *Decoder) Build(maxChunk, told int, by sample.Sampling) (*network.Network, error) {
	n := &network.Network{PosTensor: graph.None, Vocab: m.Vocab}
	n.Tokens = m.Input("tokens", graph.I32, []int{1, 1}, []int{1, maxChunk})
	n.Pos = m.SymInt("pos", 0, int64(m.Context-1), 0)
	m.pos, m.tokens = n.Pos, n.Tokens
	m.addSlots()
	n.Logits = m.forward()
	n.Picks = sample.Pick(m.Builder, n.Logits, m.Vocab, told, by)
	m.Output(n.Logits)
	for _, counts := range m.expertCounts {
		m.Output(counts)
	}
	n.ExpertCounts, n.Recurrent = m.expertCounts, m.recurrentState
	m.W.refuseUnknown()
	var err error
	n.Graph, err = m.Finish()
	return n, err
}

// forward returns the logits after the last token.
func (m *Decoder) forward() graph.ValueID {
	name := m.Form.Names
	table := m.W.Matrix(name.Embed, m.Vocab, m.Dim)
	head := table
	if m.Tied {
		m.W.use(name.Head) // some files contain a head that is a copy of the embedding
	} else {
		head = m.W.Matrix(name.Head, m.Vocab, m.Dim)
	}
	x := ops.Embedding(m.Builder, "embed", table, m.tokens)
	scale := m.EmbedScale
	if m.Arch.scaledEmbedding {
		scale = math.Sqrt(float64(m.Dim))
	}
	x = m.times("scale", "embed_scale", x, scale)
	if m.Arch.layerNorms {
		m.zeros = m.Constant("norm_bias", graph.F32, []int{m.Dim}, func() ([]byte, error) {
			return make([]byte, 4*m.Dim), nil
		})
	}
	m.growQueries()
	m.rotate = m.Form.pairs.rotary(m, "", &m.Rope, m.HeadDim)
	m.rotateLocal = m.rotate
	if m.LocalRope != nil && slices.Max(m.Windows) > 0 {
		m.rotateLocal = m.Form.pairs.rotary(m, "local_", m.LocalRope, m.LocalHeadDim)
	}
	m.attentions, m.unweighted = map[int]*attention{}, map[int]graph.ValueID{}
	m.inputs = m.layerInputs(x)
	for i := range m.Layers {
		x = m.layer(i, x)
	}
	m.Scope("", -1, "")
	x = m.norm("norm", x, m.W.norm(name.Norm, m.Dim))
	x = ops.Linear(m.Builder, "lm_head", x, head, graph.None)
	x = m.times("logit_scale", "logit_factor", x, m.LogitScale)
	if m.LogitCap > 0 {
		x = m.times("logit_cap_in", "logit_cap_inverse", x, 1/m.LogitCap)
		x = kind.First(ops.New(m.Builder, "tanh", "logit_cap_tanh", kind.Args{"x": x}))
		x = m.times("logit_cap_out", "logit_cap", x, m.LogitCap)
	}
	return x
}

// times multiplies x by the number `by`, which becomes a constant with the name `factor`. times returns x
// unchanged if the number is 0 or 1.
func (m *Decoder) times(name, factor string, x graph.ValueID, by float64) graph.ValueID {
	if by == 0 || by == 1 {
		return x
	}
	return basic.Mul(m.Builder, name, x, m.scalar(factor, float32(by)))
}

// scalar adds an f32 constant of shape [1].
func (m *Decoder) scalar(name string, x float32) graph.ValueID {
	return m.Constant(name, graph.F32, []int{1}, func() ([]byte, error) {
		return binary.LittleEndian.AppendUint32(nil, math.Float32bits(x)), nil
	})
}

// ones returns a constant f32 [n] of ones. It serves as the weights of a norm that has no weights in the
// file.
func (m *Decoder) ones(n int) graph.ValueID {
	v, ok := m.unweighted[n]
	if !ok {
		v = m.Constant(fmt.Sprintf("ones_%d", n), graph.F32, []int{n}, func() ([]byte, error) {
			one := binary.LittleEndian.AppendUint32(nil, math.Float32bits(1))
			return bytes.Repeat(one, n), nil
		})
		m.unweighted[n] = v
	}
	return v
}

// lastPos adds a SymInt to the graph: the position of the step's last token.
func (m *Decoder) lastPos() graph.ValueID {
	seq := basic.SymSize(m.Builder, "last_seq", m.tokens, 1)
	end := basic.SymAdd(m.Builder, "end", kind.Sym(m.pos), kind.Sym(seq))
	return basic.SymSub(m.Builder, "last_pos", kind.Sym(end), kind.Fixed(1))
}

// normIf returns the weights of a norm, or None if the architecture has no such norm.
func (m *Decoder) normIf(has bool, name string, n int) graph.ValueID {
	if !has {
		return graph.None
	}
	return m.W.norm(name, n)
}

// norm applies the architecture's norm to x: RMSNorm or LayerNorm. norm returns x unchanged if weight is
// None.
func (m *Decoder) norm(name string, x, weight graph.ValueID) graph.ValueID {
	switch {
	case weight == graph.None:
		return x
	case m.Arch.layerNorms:
		return basic.LayerNorm(m.Builder, name, x, weight, m.zeros, m.Eps)
	}
	return ops.RMSNorm(m.Builder, name, x, weight, m.Eps)
}

// add adds the output y of attention or of the MLP, times ResidualScale, to the residual stream x.
func (m *Decoder) add(x, y graph.ValueID) graph.ValueID {
	return basic.Add(m.Builder, "add", x, y, float32(cmp.Or(m.ResidualScale, 1)))
}

// lastOf drops the tokens that are not needed: in the last layer it returns only the row of the last token,
// and in all other layers it returns the whole tensor.
func (m *Decoder) lastOf(name string, layer int, x graph.ValueID) graph.ValueID {
	if layer < m.Layers-1 {
		return x
	}
	return basic.SliceRange(m.Builder, name, x, 1, kind.Fixed(-1), kind.Fixed(basic.ToEnd), 1)
}
