package ops

import (
	"fmt"
	"math"

	"github.com/x448/float16"

	"gpuscope/engine"
	"gpuscope/shaders"
)

// The routes of sdpa_with_kv_cache, and its dispatch slots.
const (
	sdpaMaterialized = iota
	sdpaFlashDecoding
)

var sdpaRoutes = []string{"materialized", "flash_decoding"}

const (
	sdpaCacheK = iota
	sdpaCacheV
	sdpaQK
	sdpaSoftmax
	sdpaAV
	sdpaSplit
	sdpaReduce
)

const (
	sdpaTile      = 64  // rows, positions and dims of a tile of the materialized route
	sdpaTileLanes = 256 // that share it
	sdpaSplitStep = 64  // positions that a workgroup of the split takes at a time, and its lanes
	sdpaMaxSplits = 128
	sdpaMaxDim    = 128 // of a head, on the flash decoding route
)

// SDPA adds sdpa_with_kv_cache: it writes the keys and values of S tokens to the caches, from row position on, and gives the attention of the S queries
// over all rows up to their own,
//
//	y[s][h] = sum over c <= position+s of softmax(scale * q[s][h] . K[c][h/g])[c] * V[c][h/g],  g = heads / kv heads
//
//	q        [1, S, heads, D], D a multiple of 4
//	k, v     [1, S, kv heads, D]
//	K, V     [1, C, kv heads, D], State; f32, or f16 two to a word
//	position 0 to C - S
//	y        dims of q
//
// scale is 1/sqrt(D) where it is 0. One token takes flash_decoding: the positions are split over workgroups, and a second dispatch puts the splits
// together (Dao et al., Flash-Decoding, 2023). More tokens take materialized: scores, softmax, weighted sum, with the scores in scratch of
// heads * S * (position + S) words. Heads of more than 128 always take it.
func SDPA(b *engine.Builder, name string, q, k, v, cacheK, cacheV engine.ValueID, position Int, scale float64) engine.ValueID {
	if !ready(b, q, k, v, cacheK, cacheV) {
		return engine.None
	}
	o := &sdpa{q: q, k: k, v: v, cacheK: cacheK, cacheV: cacheV, position: position}
	if err := o.geometry(b); err != nil {
		b.Errorf("%s: %w", name, err)
		return engine.None
	}
	o.scale = float32(scale)
	if scale == 0 {
		o.scale = float32(1 / math.Sqrt(float64(o.dim)))
	}
	o.makeKernels(b)
	o.y = b.Tensor(name, engine.F32)
	o.scores = b.Scratch(name+".scores", engine.F32)
	if o.splittable() {
		o.partO, o.partML = b.Scratch(name+".part_o", engine.F32), b.Scratch(name+".part_ml", engine.F32)
	}
	b.Add(name, o)
	return o.y
}

type sdpa struct {
	q, k, v, cacheK, cacheV, y engine.ValueID
	scores, partO, partML      engine.ValueID
	position                   Int
	scale                      float32
	heads, kvHeads, dim, cache int
	half                       bool // the caches are f16

	write, qk, softmax, av, split, reduce *engine.Kernel
	softmaxLanes                          int
}

// geometry takes the dims that never change from the arguments, and checks them.
func (o *sdpa) geometry(b *engine.Builder) error {
	q, k, v, ck, cv := b.MaxDims(o.q), b.MaxDims(o.k), b.MaxDims(o.v), b.MaxDims(o.cacheK), b.MaxDims(o.cacheV)
	for _, d := range [][]int{q, k, v, ck, cv} {
		if len(d) != 4 || d[0] != 1 {
			return fmt.Errorf("q %v, k %v, v %v, caches %v and %v: want [1, rows, heads, D] of each", q, k, v, ck, cv)
		}
	}
	o.heads, o.dim, o.kvHeads, o.cache = q[2], q[3], k[2], ck[1]
	switch {
	case !sameDims(k, v) || !sameDims(ck, cv) || ck[2] != o.kvHeads || ck[3] != o.dim || k[3] != o.dim:
		return fmt.Errorf("k %v, v %v, caches %v and %v do not belong together and to q %v", k, v, ck, cv, q)
	case o.heads%o.kvHeads != 0:
		return fmt.Errorf("%d heads are no multiple of %d kv heads", o.heads, o.kvHeads)
	case o.dim%4 != 0:
		return fmt.Errorf("heads of %d, want a multiple of 4", o.dim)
	case q[1] > o.cache:
		return fmt.Errorf("up to %d tokens a step, and a cache of %d", q[1], o.cache)
	}
	switch t := b.DType(o.cacheK); {
	case t != b.DType(o.cacheV) || t != engine.F32 && t != engine.F16:
		return fmt.Errorf("caches of %s and %s, want f32 or f16", t, b.DType(o.cacheV))
	default:
		o.half = t == engine.F16
	}
	return nil
}

func (o *sdpa) splittable() bool { return o.dim <= sdpaMaxDim }

func (o *sdpa) makeKernels(b *engine.Builder) {
	heads := func(more shaders.Constants) shaders.Constants {
		c := shaders.Constants{"Heads": o.heads, "D": o.dim}
		for name, v := range more {
			c[name] = v
		}
		return c
	}
	o.softmaxLanes = lanesFor(b, o.cache)
	o.write = copyKernel(b, 4)
	if o.half {
		o.write = kernel(b, "sdpa_pack_cache", shaders.Constants{"Lanes": threadLanes})
	}
	o.qk = kernel(b, "sdpa_qk", heads(shaders.Constants{"KVHeads": o.kvHeads, "Half": o.half}))
	o.softmax = kernel(b, "sdpa_softmax", shaders.Constants{"Lanes": o.softmaxLanes})
	o.av = kernel(b, "sdpa_av", heads(shaders.Constants{"KVHeads": o.kvHeads, "Half": o.half}))
	if o.splittable() {
		o.split = kernel(b, "sdpa_split", heads(shaders.Constants{
			"KVHeads": o.kvHeads, "Half": o.half, "Lanes": sdpaSplitStep, "PerLane": divUp(o.dim, sdpaSplitStep),
		}))
		o.reduce = kernel(b, "sdpa_reduce", heads(shaders.Constants{"Lanes": threadLanes, "MaxSplits": sdpaMaxSplits}))
	}
}

func (o *sdpa) Spec() engine.Spec {
	s := engine.Spec{
		Kind: "sdpa_with_kv_cache", Inputs: args([]engine.ValueID{o.q, o.k, o.v}, o.position), State: []engine.ValueID{o.cacheK, o.cacheV},
		Outputs: []engine.ValueID{o.y}, Scratch: []engine.ValueID{o.scores}, Routes: sdpaRoutes[:1],
		Slots: []engine.Slot{
			{Label: "cache_k", Uses: one(o.write, o.k, o.cacheK)},
			{Label: "cache_v", Uses: one(o.write, o.v, o.cacheV)},
			{Label: "qk", Uses: []engine.Use{{Kernel: o.qk, Bind: []engine.ValueID{o.q, o.cacheK, o.scores}}, {}}},
			{Label: "softmax", Uses: []engine.Use{{Kernel: o.softmax, Bind: []engine.ValueID{o.scores}}, {}}},
			{Label: "av", Uses: []engine.Use{{Kernel: o.av, Bind: []engine.ValueID{o.scores, o.cacheV, o.y}}, {}}},
		},
		Attrs: map[string]any{"heads": o.heads, "kv_heads": o.kvHeads, "head_dim": o.dim, "cache": o.cache, "scale": o.scale, "input_pos": o.position.attr()},
	}
	if o.splittable() {
		s.Routes, s.Scratch = sdpaRoutes, []engine.ValueID{o.scores, o.partO, o.partML}
		s.Slots = append(s.Slots,
			engine.Slot{Label: "split", Uses: []engine.Use{{}, {Kernel: o.split, Bind: []engine.ValueID{o.q, o.cacheK, o.cacheV, o.partO, o.partML}}}},
			engine.Slot{Label: "reduce", Uses: []engine.Use{{}, {Kernel: o.reduce, Bind: []engine.ValueID{o.partO, o.partML, o.y}}}})
	}
	return s
}

// Corners: the longest step at the last position it fits has the largest scores, one token at the last position the most splits. Two tokens there have the
// longest rows of the fewest, and the shortest step at the first position the smallest grids.
func (o *sdpa) Corners(r *engine.Ranges) []engine.Corner {
	shortest, longest := r.Min(o.q)[1], r.Max(o.q)[1]
	first, last := o.position.span(r)
	var list []engine.Corner
	at := func(tokens, position int) {
		if tokens < shortest || tokens > longest || position < first || position+tokens > o.cache {
			return
		}
		c := engine.Corner{
			{Value: o.q, Dims: []int{1, tokens, o.heads, o.dim}},
			{Value: o.k, Dims: []int{1, tokens, o.kvHeads, o.dim}},
			{Value: o.v, Dims: []int{1, tokens, o.kvHeads, o.dim}},
		}
		list = append(list, append(c, o.position.set(position)...))
	}
	for _, tokens := range []int{longest, 2, 1, shortest} {
		at(tokens, min(last, o.cache-tokens))
	}
	at(shortest, first)
	return list
}

func (o *sdpa) Plan(p *engine.Planner) error {
	q, tokens, position := p.Dims(o.q), p.Dim(o.q, 1), o.position.at(p)
	for _, x := range [2]engine.ValueID{o.k, o.v} {
		if d := p.Dims(x); d[1] != tokens || d[2] != o.kvHeads || d[3] != o.dim {
			return p.Errorf("keys or values of %v for queries of %v", d, q)
		}
	}
	context := position + tokens
	if q[2] != o.heads || q[3] != o.dim || position < 0 || context > o.cache {
		return p.Errorf("queries %v at position %d, and a cache of %d rows of %d heads of %d", q, position, o.cache, o.heads, o.dim)
	}
	p.SetDims(o.y, q...)
	for i := range 2 {
		o.planWrite(p, sdpaCacheK+i, tokens, position)
	}
	preferred, why, allowed := sdpaMaterialized, manyTokens, uint64(1)<<sdpaMaterialized
	switch {
	case !o.splittable():
		why = wideHead
	case tokens == 1:
		preferred, why, allowed = sdpaFlashDecoding, oneToken, allowed|1<<sdpaFlashDecoding
	}
	if p.Choose(preferred, why, allowed) == sdpaFlashDecoding {
		o.planSplit(p, context)
	} else {
		o.planMaterialized(p, tokens, position)
	}
	return nil
}

// element is the size of a cache element in bytes.
func (o *sdpa) element() int64 {
	if o.half {
		return 2
	}
	return 4
}

// rowBytes is the size of the keys, or values, of a position.
func (o *sdpa) rowBytes() int64 { return int64(o.kvHeads*o.dim) * o.element() }

// planWrite is the write of the new rows to a cache.
func (o *sdpa) planWrite(p *engine.Planner, slot, tokens, position int) {
	row := o.kvHeads * o.dim
	if !o.half {
		blockCopy{blocks: 1, rows: 1, width: tokens * row, dstStart: position * row}.plan(p, slot, 4)
		return
	}
	l := p.Dispatch(slot, p.Threads(tokens*row/4, threadLanes))
	l.Params.U32(tokens*row/4, position*row/4)
	l.Bytes = int64(tokens) * int64(row) * 6
}

func (o *sdpa) planMaterialized(p *engine.Planner, tokens, position int) {
	context := position + tokens
	scores := int64(o.heads) * int64(tokens) * int64(context)
	p.SetDims(o.scores, o.heads, tokens, context)
	flops := 2 * scores * int64(o.dim)
	rows := 4 * int64(tokens) * int64(o.heads) * int64(o.dim)

	qk := p.Dispatch(sdpaQK, p.Tiles(context, sdpaTile, tokens, sdpaTile, o.heads, sdpaTileLanes))
	qk.Params.U32(tokens, context, position).F32(o.scale)
	qk.Bytes, qk.FLOPs = rows+int64(context)*o.rowBytes()+4*scores, flops

	softmax := p.Dispatch(sdpaSoftmax, p.Rows(o.heads*tokens, o.softmaxLanes, context))
	softmax.Params.U32(o.heads*tokens, tokens, context, position)
	softmax.Bytes, softmax.FLOPs = 8*scores, 5*scores

	av := p.Dispatch(sdpaAV, p.Tiles(o.dim, sdpaTile, tokens, sdpaTile, o.heads, sdpaTileLanes))
	av.Params.U32(tokens, context, position)
	av.Bytes, av.FLOPs = 4*scores+int64(context)*o.rowBytes()+rows, flops
}

func (o *sdpa) planSplit(p *engine.Planner, context int) {
	splits := min(divUp(context, sdpaSplitStep), sdpaMaxSplits)
	length := divUp(context, splits)
	p.SetDims(o.partO, o.heads, splits, o.dim)
	p.SetDims(o.partML, o.heads, splits, 2)
	parts := 4 * int64(o.heads) * int64(splits) * int64(o.dim+2)
	row := 4 * int64(o.heads) * int64(o.dim)

	split := p.Dispatch(sdpaSplit, p.Rows(o.heads*splits, sdpaSplitStep, length))
	split.Params.U32(context, splits, length).F32(o.scale)
	split.Bytes, split.FLOPs = row+2*int64(context)*o.rowBytes()+parts, 4*int64(context)*int64(o.heads)*int64(o.dim)

	reduce := p.Dispatch(sdpaReduce, p.Rows(o.heads, threadLanes, o.dim))
	reduce.Params.U32(splits)
	reduce.Bytes, reduce.FLOPs = parts+row, 2*int64(o.heads)*int64(splits)*int64(o.dim)
}

func (o *sdpa) Reference(r *Ref) {
	q, k, v, position := r.Tensor(o.q), r.Tensor(o.k), r.Tensor(o.v), o.position.in(r)
	cacheK, cacheV := r.Tensor(o.cacheK), r.Tensor(o.cacheV)
	row := o.kvHeads * o.dim
	for i := range k.Data {
		cacheK.Data[position*row+i], cacheV.Data[position*row+i] = o.stored(k.Data[i]), o.stored(v.Data[i])
	}
	y := q.like()
	for s := range q.Dims[1] {
		for h := range o.heads {
			at := (s*o.heads + h) * o.dim
			o.attend(q.Data[at:at+o.dim], cacheK.Data, cacheV.Data, h/(o.heads/o.kvHeads), position+s+1, y.Data[at:at+o.dim])
		}
	}
	r.Set(o.y, y)
}

// stored is what a cache element holds of x.
func (o *sdpa) stored(x float64) float64 {
	if o.half {
		return float64(float16.Fromfloat32(float32(x)).Float32())
	}
	return x
}

// attend is the attention of one query over the first n rows of a kv head.
func (o *sdpa) attend(q, keys, values []float64, kvHead, n int, y []float64) {
	weights := make([]float64, n)
	largest, sum := math.Inf(-1), 0.0
	for c := range n {
		for d, x := range q {
			weights[c] += x * keys[(c*o.kvHeads+kvHead)*o.dim+d]
		}
		weights[c] *= float64(o.scale)
		largest = max(largest, weights[c])
	}
	for c := range n {
		weights[c] = math.Exp(weights[c] - largest)
		sum += weights[c]
	}
	for c := range n {
		for d := range y {
			y[d] += weights[c] / sum * values[(c*o.kvHeads+kvHead)*o.dim+d]
		}
	}
}
