package model

import (
	"fmt"

	"gpuscope/engine"
	"gpuscope/ops"
)

// network is a model's graph, with what a step sets and reads of it.
type network struct {
	graph  *engine.Graph
	tokens engine.ValueID // i32 [1, S], S up to the largest chunk
	pos    engine.ValueID // SymInt: position of the first of them
	logits engine.ValueID // f32 [1, vocab], of the last of them
	picks
}

// vocab is the number of logits.
func (n *network) vocab() int { return n.graph.Value(n.logits).MaxDims[1] }

// decoder builds the graph of a decoder-only transformer from its configuration; what one family does in its
// own way is in the row of its architecture. One graph serves prefill and decode: its tokens are [1, S] for
// any S from 1 to the largest chunk, its position is a SymInt.
type decoder struct {
	*engine.Builder
	config
	context int
	kv      engine.DType // of the cache
	w       *weights
	pos     engine.ValueID
	tokens  engine.ValueID
	rotate  rotary // queries and keys, by the live positions
}

// attention is the first half of a layer.
type attention struct {
	norm           engine.ValueID
	q, k, v, o     ops.Matrix
	kCache, vCache engine.ValueID // f32 or f16 [1, context, KVHeads, HeadDim]
}

// mlp is the second half of a layer.
type mlp struct {
	norm           engine.ValueID
	gate, up, down ops.Matrix
}

// build makes the graph for steps of at most maxChunk tokens, each of which tells some candidates.
func (m *decoder) build(maxChunk, told int, by Sampling) (*network, error) {
	n := &network{}
	n.tokens = m.Input("tokens", engine.I32, []int{1, 1}, []int{1, maxChunk})
	n.pos = m.SymInt("pos", 0, int64(m.context-1), 0)
	m.pos, m.tokens = n.pos, n.tokens
	n.logits = m.forward()
	n.picks = pick(m.Builder, n.logits, m.Vocab, told, by)
	m.Output(n.logits)
	m.w.refuseUnknown()
	var err error
	n.graph, err = m.Finish()
	return n, err
}

// forward gives the logits of the last token.
func (m *decoder) forward() engine.ValueID {
	name := m.Form.names
	table := m.w.matrix(name.embed, m.Vocab, m.Dim)
	head := table
	if m.Tied {
		m.w.used[name.head] = true // what a file has of it all the same is the embedding once more
	} else {
		head = m.w.matrix(name.head, m.Vocab, m.Dim)
	}
	x := ops.Embedding(m.Builder, "embed", table, m.tokens)
	m.rotate = m.Form.pairs.rotary(m)
	for i := range m.Layers {
		x = m.attention(i).forward(m, i, x)
		x = m.mlp(i).forward(m, i, x)
	}
	m.Scope("", -1, "")
	x = ops.Select(m.Builder, "select last", x, 1, -1)
	x = ops.RMSNorm(m.Builder, "norm", x, m.w.vector(name.norm, m.Dim), m.Eps)
	return ops.Linear(m.Builder, "lm_head", x, head, engine.None)
}

func (m *decoder) attention(layer int) *attention {
	name, blk := m.Form.names, m.Form.names.of(layer)
	q, kv := m.Heads*m.HeadDim, m.KVHeads*m.HeadDim
	cache := []int{1, m.context, m.KVHeads, m.HeadDim}
	return &attention{
		norm:   m.w.vector(blk+name.attnNorm, m.Dim),
		q:      m.w.matrix(blk+name.q, q, m.Dim),
		k:      m.w.matrix(blk+name.k, kv, m.Dim),
		v:      m.w.matrix(blk+name.v, kv, m.Dim),
		o:      m.w.matrix(blk+name.o, m.Dim, q),
		kCache: m.State(fmt.Sprintf("layers.%d.k_cache", layer), m.kv, cache),
		vCache: m.State(fmt.Sprintf("layers.%d.v_cache", layer), m.kv, cache),
	}
}

// forward is x + attention(norm(x)).
func (a *attention) forward(m *decoder, layer int, x engine.ValueID) engine.ValueID {
	b := m.Builder
	b.Scope(fmt.Sprintf("layers.%d.attn.", layer), layer, "attn")
	h := ops.RMSNorm(b, "norm", x, a.norm, m.Eps)
	q := ops.Linear(b, "q", h, a.q, engine.None)
	k := ops.Linear(b, "k", h, a.k, engine.None)
	v := ops.Linear(b, "v", h, a.v, engine.None)
	q = ops.View(b, "q_heads", q, ops.Fixed(1), ops.Rest, ops.Fixed(m.Heads), ops.Fixed(m.HeadDim))
	k = ops.View(b, "k_heads", k, ops.Fixed(1), ops.Rest, ops.Fixed(m.KVHeads), ops.Fixed(m.HeadDim))
	v = ops.View(b, "v_heads", v, ops.Fixed(1), ops.Rest, ops.Fixed(m.KVHeads), ops.Fixed(m.HeadDim))
	q, k = m.rotate("rope", q, k)
	y := ops.SDPA(b, "sdpa", q, k, v, a.kCache, a.vCache, ops.Sym(m.pos), 0, 0)
	y = ops.View(b, "join", y, ops.Fixed(1), ops.Rest, ops.Fixed(m.Heads*m.HeadDim))
	y = ops.Linear(b, "o", y, a.o, engine.None)
	return ops.Add(b, "add", x, y, 1)
}

func (m *decoder) mlp(layer int) *mlp {
	name, blk := m.Form.names, m.Form.names.of(layer)
	return &mlp{
		norm: m.w.vector(blk+name.ffnNorm, m.Dim),
		gate: m.w.matrix(blk+name.gate, m.FFN, m.Dim),
		up:   m.w.matrix(blk+name.up, m.FFN, m.Dim),
		down: m.w.matrix(blk+name.down, m.Dim, m.FFN),
	}
}

// forward is x + down(act(gate(norm(x))) * up(norm(x))), with the activation of the architecture.
func (f *mlp) forward(m *decoder, layer int, x engine.ValueID) engine.ValueID {
	b := m.Builder
	b.Scope(fmt.Sprintf("layers.%d.mlp.", layer), layer, "mlp")
	h := ops.RMSNorm(b, "norm", x, f.norm, m.Eps)
	gate := ops.Linear(b, "gate", h, f.gate, engine.None)
	up := ops.Linear(b, "up", h, f.up, engine.None)
	h = m.Arch.gate.join(b, m.Arch.gate.name, gate, up)
	h = ops.Linear(b, "down", h, f.down, engine.None)
	return ops.Add(b, "add", x, h, 1)
}
