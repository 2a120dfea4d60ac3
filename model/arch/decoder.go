package arch

import (
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
	zeros       graph.ValueID // f32 [dim]: the bias of norms that subtract the mean
	// The factors of the queries for the positions of the step, and for the last of them, or None.
	queryScales, lastQueryScale graph.ValueID
}

// attention is the attention half of a layer.
type attention struct {
	norm           graph.ValueID
	q, k, v        projection
	qNorm, kNorm   graph.ValueID // norms of the queries and keys, or None
	o              projection
	postNorm       graph.ValueID // or None
	window         int           // positions in the sliding window; 0 for full attention
	rotate         rotary        // or nil if the layer has no RoPE
	kCache, vCache graph.ValueID // f32 or f16 [1, context, KVHeads, HeadDim]
}

// mlp is the MLP half of a layer.
type mlp struct {
	norm           graph.ValueID // or None if the MLP reads the norm of attention, or no norm
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
	m.rotate = m.Form.pairs.rotary(m, "", &m.Rope)
	m.rotateLocal = m.rotate
	if m.LocalRope != nil && slices.Max(m.Windows) > 0 {
		m.rotateLocal = m.Form.pairs.rotary(m, "local_", m.LocalRope)
	}
	for i := range m.Layers {
		y, h := m.attention(i).forward(m, i, x)
		x = m.mlp(i).forward(m, i, y, h)
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

// times multiplies x by a number, which becomes the constant called factor. It returns x if the number is 0
// or 1.
func (m *Decoder) times(name, factor string, x graph.ValueID, by float64) graph.ValueID {
	if by == 0 || by == 1 {
		return x
	}
	return basic.Mul(m.Builder, name, x, m.scalar(factor, float32(by)))
}

func (m *Decoder) attention(layer int) *attention {
	name, blk := m.Form.Names, m.Form.Names.Of(layer)
	q, kv := m.Heads*m.HeadDim, m.KVHeads*m.HeadDim
	cache := []int{1, m.Context, m.KVHeads, m.HeadDim}
	normed, qNorm, kNorm := m.Arch.HeadNorms, m.HeadDim, m.HeadDim
	if m.Arch.WideNorms {
		normed, qNorm, kNorm = true, q, kv
	}
	a := &attention{
		norm:     m.normIf(!m.Arch.NoPreNorms, blk+name.AttnNorm, m.Dim),
		o:        projection{Matrix: m.W.Matrix(blk+name.O, m.Dim, q)},
		qNorm:    m.normIf(normed, blk+name.QNorm, qNorm),
		kNorm:    m.normIf(normed, blk+name.KNorm, kNorm),
		postNorm: m.normIf(m.Arch.PostNorms, blk+name.AttnPostNorm, m.Dim),
		window:   m.Windows[layer],
		rotate:   m.rotate,
		kCache:   m.State(fmt.Sprintf("layers.%d.k_cache", layer), m.KV, cache),
		vCache:   m.State(fmt.Sprintf("layers.%d.v_cache", layer), m.KV, cache),
	}
	if a.window > 0 {
		a.rotate = m.rotateLocal
	}
	if m.Unrotated != nil && m.Unrotated[layer] {
		a.rotate = nil
	}
	all := m.W.matrices(m.Arch.Fused, blk, name.Qkv, m.Dim,
		rows{name.Q, q}, rows{name.K, kv}, rows{name.V, kv})
	a.q = projection{all[0], m.biasIf(m.Biases, blk+name.QBias, q)}
	a.k = projection{all[1], m.biasIf(m.Biases, blk+name.KBias, kv)}
	a.v = projection{all[2], m.biasIf(m.Biases, blk+name.VBias, kv)}
	a.o.bias = m.biasIf(m.OutBias, blk+name.OBias, m.Dim)
	return a
}

// scalar adds an f32 constant of shape [1].
func (m *Decoder) scalar(name string, x float32) graph.ValueID {
	return m.Constant(name, graph.F32, []int{1}, func() ([]byte, error) {
		return binary.LittleEndian.AppendUint32(nil, math.Float32bits(x)), nil
	})
}

// biasIf returns the bias of a projection of attention, or None if the projection has no bias.
func (m *Decoder) biasIf(has bool, name string, n int) graph.ValueID {
	if !has && !(m.Form.storedBiases && m.W.has(name)) {
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

// norm applies RMSNorm, or LayerNorm if the architecture has it. It returns x if there are no weights.
func (m *Decoder) norm(name string, x, weight graph.ValueID) graph.ValueID {
	switch {
	case weight == graph.None:
		return x
	case m.Arch.layerNorms:
		return basic.LayerNorm(m.Builder, name, x, weight, m.zeros, m.Eps)
	}
	return ops.RMSNorm(m.Builder, name, x, weight, m.Eps)
}

// forward returns x + attention(norm(x)), or x + norm(attention(norm(x))) with post-norms. It also returns
// h, which is norm(x). Only the last token is needed after the last layer. In this layer, the keys and values
// are therefore computed for all tokens, and everything else only for the last token.
func (a *attention) forward(m *Decoder, layer int, x graph.ValueID) (y, h graph.ValueID) {
	b := m.Builder
	b.Scope(fmt.Sprintf("layers.%d.attn.", layer), layer, "attn")
	h = m.norm("norm", x, a.norm)
	q := a.q.forward(b, "q", m.lastOf("q_last", layer, h))
	k := a.k.forward(b, "k", h)
	v := a.v.forward(b, "v", h)
	if m.Arch.WideNorms {
		q, k = m.norm("q_norm", q, a.qNorm), m.norm("k_norm", k, a.kNorm)
	}
	q = basic.View(b, "q_heads", q, kind.Fixed(1), basic.Rest, kind.Fixed(m.Heads), kind.Fixed(m.HeadDim))
	k = basic.View(b, "k_heads", k, kind.Fixed(1), basic.Rest, kind.Fixed(m.KVHeads), kind.Fixed(m.HeadDim))
	v = basic.View(b, "v_heads", v, kind.Fixed(1), basic.Rest, kind.Fixed(m.KVHeads), kind.Fixed(m.HeadDim))
	norms := func() {
		q, k = m.norm("q_norm", q, a.qNorm), m.norm("k_norm", k, a.kNorm)
	}
	if !m.Arch.WideNorms && !m.Arch.normsAfterRope {
		norms()
	}
	if scales := m.queryScalesOf(layer); scales != graph.None {
		q = basic.Mul(b, "q_scale", q, scales)
	}
	if a.rotate != nil {
		q, k = a.rotate("rope", q, k)
	}
	if m.Arch.normsAfterRope {
		norms()
	}
	y = ops.SDPA(b, "sdpa", q, k, v, a.kCache, a.vCache, kind.Sym(m.pos), m.Scale, m.ScoreCap,
		a.window)
	y = basic.View(b, "join", y, kind.Fixed(1), basic.Rest, kind.Fixed(m.Heads*m.HeadDim))
	y = a.o.forward(b, "o", y)
	y = m.norm("post_norm", y, a.postNorm)
	return m.add(m.lastOf("last", layer, x), y), h
}

// add adds the output y of attention or of the MLP to the residual stream x. Only y is scaled.
func (m *Decoder) add(x, y graph.ValueID) graph.ValueID {
	return basic.Add(m.Builder, "add", x, y, float32(cmp.Or(m.ResidualScale, 1)))
}

// growQueries adds the table of the factors by which queries are multiplied if they grow with the position:
// f32 [context, 1, 1]. The step uses the rows of its positions.
func (m *Decoder) growQueries() {
	m.queryScales, m.lastQueryScale = graph.None, graph.None
	if m.Rope.QueryGrowth == 0 {
		return
	}
	table := m.Constant("query_scales", graph.F32, []int{m.Context, 1, 1}, func() ([]byte, error) {
		var data []byte
		for pos := range m.Context {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(m.Rope.queryScale(pos))))
		}
		return data, nil
	})
	seq := basic.SymSize(m.Builder, "query_seq", m.tokens, 1)
	m.queryScales = basic.Slice(m.Builder, "query_scale", table, 0, kind.Sym(m.pos), kind.Sym(seq))
	m.lastQueryScale = basic.SliceRange(m.Builder, "query_scale_last", m.queryScales, 0, kind.Fixed(-1),
		kind.Fixed(basic.ToEnd), 1)
}

// queryScalesOf returns the factors of the queries in a layer, or None if queries have no factors.
func (m *Decoder) queryScalesOf(layer int) graph.ValueID {
	if layer < m.Layers-1 {
		return m.queryScales
	}
	return m.lastQueryScale
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
	both := m.W.matrices(m.Arch.Fused || m.Arch.FusedMLP, blk, name.GateUp, m.Dim, rows{name.Gate, m.FFN},
		rows{name.Up, m.FFN})
	return &mlp{
		norm: m.normIf(!m.Arch.NoPreNorms && !m.Arch.Parallel, blk+name.FfnNorm, m.Dim),
		gate: both[0], up: both[1],
		down:     m.W.Matrix(blk+name.Down, m.Dim, m.FFN),
		postNorm: m.normIf(m.Arch.PostNorms, blk+name.FfnPostNorm, m.Dim),
	}
}

// forward returns x + down(act(gate(norm(x))) * up(norm(x))), where act is the activation function of the
// architecture. If the architecture has post-norms, the result of down is normalized before it is added to x.
// If attention and MLP are parallel, attnNorm is used instead of norm(x). It is the norm that attention read.
func (f *mlp) forward(m *Decoder, layer int, x, attnNorm graph.ValueID) graph.ValueID {
	b := m.Builder
	b.Scope(fmt.Sprintf("layers.%d.mlp.", layer), layer, "mlp")
	h := m.norm("norm", x, f.norm)
	if m.Arch.Parallel {
		h = m.lastOf("norm_last", layer, attnNorm)
	}
	gate := ops.Linear(b, "gate", h, f.gate, graph.None)
	up := ops.Linear(b, "up", h, f.up, graph.None)
	h = m.Arch.Gate.join(b, m.Arch.Gate.Name, gate, up)
	h = ops.Linear(b, "down", h, f.down, graph.None)
	h = m.norm("post_norm", h, f.postNorm)
	if m.Arch.Parallel && m.ResidualScale == 0 {
		return m.add(h, x) // the first operand is the linear that adds the other one (fusion rule residual)
	}
	return m.add(x, h)
}
