package arch

import (
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
	"gpuscope/ops/weight"
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
	pos     graph.ValueID
	tokens  graph.ValueID
	rotate  rotary // applies RoPE to queries and keys, for the positions of the step
	// rotateLocal is used instead of rotate in layers with a sliding window. It equals rotate if all layers
	// have the same rotation.
	rotateLocal rotary
}

// attention is the attention half of a layer.
type attention struct {
	norm           graph.ValueID
	q, k, v        projection
	qNorm, kNorm   graph.ValueID // norms of the queries and keys of each head, or None
	o              weight.Matrix
	postNorm       graph.ValueID // or None
	window         int           // positions in the sliding window; 0 for full attention
	rotate         rotary
	kCache, vCache graph.ValueID // f32 or f16 [1, context, KVHeads, HeadDim]
}

// mlp is the MLP half of a layer.
type mlp struct {
	norm           graph.ValueID
	gate, up, down weight.Matrix
	postNorm       graph.ValueID // or None
}

// projection is a matrix with an optional bias.
type projection struct {
	weight.Matrix
	bias graph.ValueID // or None
}

func (p *projection) forward(b *graph.Builder, name string, x graph.ValueID) graph.ValueID {
	return ops.Linear(b, name, x, p.Matrix, p.bias)
}

// Build builds the graph for steps of at most maxChunk tokens. told is the number of candidates for the next
// token that each step reports; 0 means that a step reports only the token that was picked.
func (m *Decoder) Build(maxChunk, told int, by sample.Sampling) (*network.Network, error) {
	n := &network.Network{PosTensor: graph.None, Vocab: m.Vocab}
	n.Tokens = m.Input("tokens", graph.I32, []int{1, 1}, []int{1, maxChunk})
	n.Pos = m.SymInt("pos", 0, int64(m.Context-1), 0)
	m.pos, m.tokens = n.Pos, n.Tokens
	n.Logits = m.forward()
	n.Picks = sample.Pick(m.Builder, n.Logits, m.Vocab, told, by)
	m.Output(n.Logits)
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
	if m.Arch.scaledEmbedding {
		x = basic.Mul(m.Builder, "scale", x, m.scalar("embed_scale", float32(math.Sqrt(float64(m.Dim)))))
	}
	m.rotate = m.Form.pairs.rotary(m, "", &m.Rope)
	m.rotateLocal = m.rotate
	if m.LocalRope != nil && slices.Max(m.Windows) > 0 {
		m.rotateLocal = m.Form.pairs.rotary(m, "local_", m.LocalRope)
	}
	for i := range m.Layers {
		x = m.attention(i).forward(m, i, x)
		x = m.mlp(i).forward(m, i, x)
	}
	m.Scope("", -1, "")
	x = ops.RMSNorm(m.Builder, "norm", x, m.W.norm(name.Norm, m.Dim), m.Eps)
	return ops.Linear(m.Builder, "lm_head", x, head, graph.None)
}

func (m *Decoder) attention(layer int) *attention {
	name, blk := m.Form.Names, m.Form.Names.Of(layer)
	q, kv := m.Heads*m.HeadDim, m.KVHeads*m.HeadDim
	cache := []int{1, m.Context, m.KVHeads, m.HeadDim}
	a := &attention{
		norm:     m.W.norm(blk+name.AttnNorm, m.Dim),
		o:        m.W.Matrix(blk+name.O, m.Dim, q),
		qNorm:    m.normIf(m.Arch.HeadNorms, blk+name.QNorm, m.HeadDim),
		kNorm:    m.normIf(m.Arch.HeadNorms, blk+name.KNorm, m.HeadDim),
		postNorm: m.normIf(m.Arch.PostNorms, blk+name.AttnPostNorm, m.Dim),
		window:   m.Windows[layer],
		rotate:   m.rotate,
		kCache:   m.State(fmt.Sprintf("layers.%d.k_cache", layer), m.KV, cache),
		vCache:   m.State(fmt.Sprintf("layers.%d.v_cache", layer), m.KV, cache),
	}
	if a.window > 0 {
		a.rotate = m.rotateLocal
	}
	all := m.W.matrices(m.Arch.Fused, blk, name.Qkv, m.Dim,
		rows{name.Q, q}, rows{name.K, kv}, rows{name.V, kv})
	a.q = projection{all[0], m.biasIf(blk+name.QBias, q)}
	a.k = projection{all[1], m.biasIf(blk+name.KBias, kv)}
	a.v = projection{all[2], m.biasIf(blk+name.VBias, kv)}
	return a
}

// scalar adds an f32 constant of shape [1].
func (m *Decoder) scalar(name string, x float32) graph.ValueID {
	return m.Constant(name, graph.F32, []int{1}, func() ([]byte, error) {
		return binary.LittleEndian.AppendUint32(nil, math.Float32bits(x)), nil
	})
}

// biasIf returns a bias of queries, keys or values, or None if the architecture has no biases.
func (m *Decoder) biasIf(name string, n int) graph.ValueID {
	if !m.Arch.Biases {
		return graph.None
	}
	return m.W.vector(name, n)
}

// normIf returns the weights of a norm, or None if the architecture has no such norm.
func (m *Decoder) normIf(has bool, name string, n int) graph.ValueID {
	if !has {
		return graph.None
	}
	return m.W.norm(name, n)
}

// norm applies RMSNorm. It returns x if there are no weights.
func (m *Decoder) norm(name string, x, weight graph.ValueID) graph.ValueID {
	if weight == graph.None {
		return x
	}
	return ops.RMSNorm(m.Builder, name, x, weight, m.Eps)
}

// forward returns x + attention(norm(x)), or x + norm(attention(norm(x))) with post-norms. Only the last
// token is needed after the last layer. In this layer, the keys and values are therefore computed for all
// tokens, and everything else only for the last token.
func (a *attention) forward(m *Decoder, layer int, x graph.ValueID) graph.ValueID {
	b := m.Builder
	b.Scope(fmt.Sprintf("layers.%d.attn.", layer), layer, "attn")
	h := m.norm("norm", x, a.norm)
	q := a.q.forward(b, "q", m.lastOf("q_last", layer, h))
	k := a.k.forward(b, "k", h)
	v := a.v.forward(b, "v", h)
	q = basic.View(b, "q_heads", q, kind.Fixed(1), basic.Rest, kind.Fixed(m.Heads), kind.Fixed(m.HeadDim))
	k = basic.View(b, "k_heads", k, kind.Fixed(1), basic.Rest, kind.Fixed(m.KVHeads), kind.Fixed(m.HeadDim))
	v = basic.View(b, "v_heads", v, kind.Fixed(1), basic.Rest, kind.Fixed(m.KVHeads), kind.Fixed(m.HeadDim))
	q = m.norm("q_norm", q, a.qNorm)
	k = m.norm("k_norm", k, a.kNorm)
	q, k = a.rotate("rope", q, k)
	y := ops.SDPA(b, "sdpa", q, k, v, a.kCache, a.vCache, kind.Sym(m.pos), m.Scale, 0,
		a.window)
	y = basic.View(b, "join", y, kind.Fixed(1), basic.Rest, kind.Fixed(m.Heads*m.HeadDim))
	y = ops.Linear(b, "o", y, a.o, graph.None)
	y = m.norm("post_norm", y, a.postNorm)
	return basic.Add(b, "add", m.lastOf("last", layer, x), y, 1)
}

// lastOf drops the tokens that are not needed: in the last layer it returns only the row of the last token,
// and in all other layers it returns the whole tensor.
func (m *Decoder) lastOf(name string, layer int, x graph.ValueID) graph.ValueID {
	if layer < m.Layers-1 {
		return x
	}
	return basic.SliceRange(m.Builder, name, x, 1, kind.Fixed(-1), kind.Fixed(basic.ToEnd), 1)
}

func (m *Decoder) mlp(layer int) *mlp {
	name, blk := m.Form.Names, m.Form.Names.Of(layer)
	both := m.W.matrices(m.Arch.Fused, blk, name.GateUp, m.Dim, rows{name.Gate, m.FFN}, rows{name.Up, m.FFN})
	return &mlp{
		norm: m.W.norm(blk+name.FfnNorm, m.Dim),
		gate: both[0], up: both[1],
		down:     m.W.Matrix(blk+name.Down, m.Dim, m.FFN),
		postNorm: m.normIf(m.Arch.PostNorms, blk+name.FfnPostNorm, m.Dim),
	}
}

// forward returns x + down(act(gate(norm(x))) * up(norm(x))), where act is the activation function of the
// architecture. If the architecture has post-norms, the result of down is normalized before it is added to x.
func (f *mlp) forward(m *Decoder, layer int, x graph.ValueID) graph.ValueID {
	b := m.Builder
	b.Scope(fmt.Sprintf("layers.%d.mlp.", layer), layer, "mlp")
	h := m.norm("norm", x, f.norm)
	gate := ops.Linear(b, "gate", h, f.gate, graph.None)
	up := ops.Linear(b, "up", h, f.up, graph.None)
	h = m.Arch.Gate.join(b, m.Arch.Gate.Name, gate, up)
	h = ops.Linear(b, "down", h, f.down, graph.None)
	h = m.norm("post_norm", h, f.postNorm)
	return basic.Add(b, "add", x, h, 1)
}
