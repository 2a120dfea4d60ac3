package arch

import (
	"encoding/binary"
	"fmt"
	"math"

	"gpuscope/engine/graph"
	"gpuscope/ops"
	"gpuscope/ops/basic"
	"gpuscope/ops/kind"
	"gpuscope/ops/weight"
)

// attention is the mixer of layers with attention.
type attention struct {
	q, k, v        projection
	qNorm, kNorm   graph.ValueID // norms of the queries and keys, or None
	o              projection
	window         int           // positions in the sliding window; 0 for full attention
	rotate         rotary        // or nil if the layer has no RoPE
	kCache, vCache graph.ValueID // f32 or f16 [1, context, KVHeads, HeadDim]
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
	q, kv := m.Heads*m.HeadDim, m.KVHeads*m.HeadDim
	cache := []int{1, m.Context, m.KVHeads, m.HeadDim}
	normed, qNorm, kNorm := m.Arch.HeadNorms, m.HeadDim, m.HeadDim
	if m.Arch.WideNorms {
		normed, qNorm, kNorm = true, q, kv
	}
	a := &attention{
		o:      projection{Matrix: m.W.Matrix(blk+name.O, m.Dim, q)},
		qNorm:  m.normIf(normed, blk+name.QNorm, qNorm),
		kNorm:  m.normIf(normed, blk+name.KNorm, kNorm),
		window: m.Windows[layer],
		rotate: m.rotate,
		kCache: m.State(fmt.Sprintf("layers.%d.k_cache", layer), m.KV, cache),
		vCache: m.State(fmt.Sprintf("layers.%d.v_cache", layer), m.KV, cache),
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

// biasIf returns the bias of a projection of attention, or None if the projection has no bias.
func (m *Decoder) biasIf(has bool, name string, n int) graph.ValueID {
	if !has && !(m.Form.storedBiases && m.W.has(name)) {
		return graph.None
	}
	return m.W.vector(name, n)
}

func (a *attention) part() string { return "attn" }

// forward returns o(attention(h)). Only the last token is needed after the last layer. In this layer, the
// keys and values are therefore computed for all tokens, and everything else only for the last token.
func (a *attention) forward(m *Decoder, layer int, h graph.ValueID) graph.ValueID {
	b := m.Builder
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
	y := ops.SDPA(b, "sdpa", q, k, v, a.kCache, a.vCache, kind.Sym(m.pos), m.Scale, m.ScoreCap,
		a.window, graph.None)
	y = basic.View(b, "join", y, kind.Fixed(1), basic.Rest, kind.Fixed(m.Heads*m.HeadDim))
	return a.o.forward(b, "o", y)
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
