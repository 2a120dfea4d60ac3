package arch

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"gpuscope/engine/graph"
	"gpuscope/ops"
	"gpuscope/ops/basic"
	"gpuscope/ops/kind"
	"gpuscope/ops/weight"
)

// attention is the mixer of layers with attention.
type attention struct {
	q, o           projection
	k, v           *projection   // nil if the layer reads the keys and values of another layer
	gate           weight.Matrix // computes gates for the outputs of the heads, in gated attention only
	qNorm, kNorm   graph.ValueID // norms of the queries and keys, or None
	vNorm          graph.ValueID // norm of the values, or None
	sinks          graph.ValueID // scores of the attention sinks, or None
	headDim        int
	kvHeads        int
	window         int           // positions in the sliding window; 0 for full attention
	rotate         rotary        // applies RoPE; nil if the layer has no RoPE
	kCache, vCache graph.ValueID // f32 or f16 [1, context, kvHeads, headDim]
}

// projection is a matrix with an optional bias.
type projection struct {
	weight.Matrix
	bias graph.ValueID // or None
}

func (p *projection) forward(b *graph.Builder, name string, x graph.ValueID) graph.ValueID {
	return ops.Linear(b, name, x, p.Matrix, p.bias)
}

func (m *Decoder) attention(layer int) *attention {
	name, blk := m.Form.Names, m.Form.Names.Of(layer)
	a := &attention{headDim: m.headDim(layer), kvHeads: m.KVHeads[layer], window: m.Windows[layer]}
	q, kv := m.Heads*a.headDim, a.kvHeads*a.headDim
	normed, qNorm, kNorm := m.Arch.HeadNorms, a.headDim, a.headDim
	if m.Arch.WideNorms {
		normed, qNorm, kNorm = true, q, kv
	}
	own := m.KVFrom[layer] == layer
	a.o = projection{Matrix: m.W.Matrix(blk+name.O, m.Dim, q)}
	a.qNorm = m.normIf(normed, blk+name.QNorm, qNorm)
	a.kNorm = m.normIf(normed && own, blk+name.KNorm, kNorm)
	if a.rotate = m.rotate; a.window > 0 {
		a.rotate = m.rotateLocal
	}
	if m.Unrotated != nil && m.Unrotated[layer] {
		a.rotate = nil
	}
	a.vNorm, a.sinks = graph.None, graph.None
	if m.Arch.Sinks {
		a.sinks = m.W.vector(blk+name.sinks, m.Heads)
	}
	if m.Arch.valueNorms && own {
		a.vNorm = m.ones(a.headDim)
	}
	parts := []rows{{name.Q, q}, {name.K, kv}, {name.V, kv}}
	if own {
		cache := []int{1, m.Context, a.kvHeads, a.headDim}
		a.kCache = m.State(fmt.Sprintf("layers.%d.k_cache", layer), m.KV, cache)
		a.vCache = m.State(fmt.Sprintf("layers.%d.v_cache", layer), m.KV, cache)
	} else {
		for _, unused := range []string{name.K, name.V, name.KNorm} {
			m.W.use(blk + unused) // files may contain these tensors, but no program reads them
		}
		from := m.attentions[m.KVFrom[layer]]
		a.kCache, a.vCache, parts = from.kCache, from.vCache, parts[:1]
	}
	if m.Arch.keysAsValues && !m.W.has(blk+name.V) {
		parts = slices.DeleteFunc(parts, func(r rows) bool { return r.name == name.V })
	}
	var all []weight.Matrix
	if m.Arch.gatedAttention {
		all = make([]weight.Matrix, 1, 3)
		all[0], a.gate = m.W.alternating(blk+name.Q, m.Heads, m.HeadDim, m.Dim)
		all = append(all, m.W.matrices(false, blk, "", m.Dim, parts[1:]...)...)
	} else {
		all = m.W.matrices(m.Arch.Fused, blk, name.Qkv, m.Dim, parts...)
	}
	a.q = projection{all[0], m.biasIf(m.Biases, blk+name.QBias, q)}
	if len(all) > 1 {
		a.k = &projection{all[1], m.biasIf(m.Biases, blk+name.KBias, kv)}
	}
	if len(all) > 2 {
		a.v = &projection{all[2], m.biasIf(m.Biases, blk+name.VBias, kv)}
	}
	a.o.bias = m.biasIf(m.OutBias, blk+name.OBias, m.Dim)
	m.attentions[layer] = a
	return a
}

// biasIf returns the bias of a projection of attention, or None if the projection has no bias.
func (m *Decoder) biasIf(has bool, name string, n int) graph.ValueID {
	if !has && !(m.Form.storedBiases && m.W.has(name)) {
		return graph.None
	}
	return m.W.vector(name, n)
}

func (a *attention) part() string { return "attn" }

// forward returns o(attention(h)). Only the last token is needed after the last layer. The last layer
// therefore computes keys and values for all tokens, but everything else only for the last token.
func (a *attention) forward(m *Decoder, layer int, h graph.ValueID) graph.ValueID {
	b, pos := m.Builder, kind.Sym(m.pos)
	if a.k == nil && layer == m.Layers-1 {
		pos = kind.Sym(m.lastPos()) // a layer without keys processes only the last token
	}
	last := m.lastOf("q_last", layer, h)
	q, k, v := a.q.forward(b, "q", last), graph.None, graph.None
	if a.k != nil {
		k = a.k.forward(b, "k", h)
		v = k
	}
	if a.v != nil {
		v = a.v.forward(b, "v", h)
	}
	if m.Arch.WideNorms {
		q, k = m.norm("q_norm", q, a.qNorm), m.norm("k_norm", k, a.kNorm)
	}
	q, k = a.heads(b, "q_heads", q, m.Heads), a.heads(b, "k_heads", k, a.kvHeads)
	v = a.heads(b, "v_heads", v, a.kvHeads)
	norms := func() {
		q, k = m.norm("q_norm", q, a.qNorm), m.norm("k_norm", k, a.kNorm)
	}
	if !m.Arch.WideNorms && !m.Arch.normsAfterRope {
		norms()
	}
	v = m.norm("v_norm", v, a.vNorm)
	if scales := m.queryScalesOf(layer); scales != graph.None {
		q = basic.Mul(b, "q_scale", q, scales)
	}
	if a.rotate != nil {
		q, k = a.rotate("rope", q, k, pos)
	}
	if m.Arch.normsAfterRope {
		norms()
	}
	y := ops.SDPA(b, "sdpa", q, k, v, a.kCache, a.vCache, pos, m.Scale, m.ScoreCap, a.window, a.sinks)
	y = basic.View(b, "join", y, kind.Fixed(1), basic.Rest, kind.Fixed(m.Heads*a.headDim))
	if m.Arch.gatedAttention {
		y = basic.SigmoidMul(b, "gate_mul", ops.Linear(b, "gate", last, a.gate, graph.None), y)
	}
	return a.o.forward(b, "o", y)
}

// heads divides the rows of x among n heads: f32 [1, S, n, headDim]. It returns None if x is None.
func (a *attention) heads(b *graph.Builder, name string, x graph.ValueID, n int) graph.ValueID {
	if x == graph.None {
		return x
	}
	return basic.View(b, name, x, kind.Fixed(1), basic.Rest, kind.Fixed(n), kind.Fixed(a.headDim))
}

// growQueries adds a table with a factor for the queries of each position, f32 [context, 1, 1]. A step
// multiplies its queries by the factors of its positions. growQueries adds nothing if queries do not grow
// with the position.
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
