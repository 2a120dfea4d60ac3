package ops

import (
	"math"
	"slices"
	"sort"

	"gpuscope/engine/graph"
	"gpuscope/engine/graph/grid"
	"gpuscope/ops/internal/shape"
	"gpuscope/ops/kind"
	"gpuscope/shaders"
)

// SDPA adds sdpa_with_kv_cache, which is causal attention with a KV cache. It appends k and v to their
// caches, starting at a position. Each token attends to all positions up to its own. If k and v are None,
// another operator has appended the keys and values of these positions to the caches in the same step.
//
//	q       [1, S, Hq, D], D a multiple of 4; or [1, 1, Hq, D] for the last token only
//	k, v    [1, S, Hkv, D], or None; Hkv divides Hq: query head h uses KV head h / (Hq/Hkv)
//	caches  [1, C, Hkv, D], State, f32 or f16
//	sinks   [Hq]
//	y       dims of q, softmax(scale * q * k' over positions 0 to position + s) * v
//
// A scale of 0 means 1 / sqrt(D). A softCap above 0 limits the scores: a score s becomes softCap * tanh(s /
// softCap), before the mask and the softmax. A softCap of 0 means no limit. The window is the largest number
// of positions that a token sees: its own position and the positions right before it. A window of 0 means no
// limit. Sinks has a score for each query head, or is None. The softmax of each token includes the sink of
// the head as an unscaled score, as if there were one more position, whose value is zero. Position + S must
// be at most C. The operator never reads the caches at position + S or later, or before the window of the
// first token.
//
// A step with several tokens has three routes. On the route `streaming`, the first dispatch updates the
// caches. In the second dispatch, each workgroup computes a tile of 64 rows, and iterates over the positions.
// The rows are the tokens of the query heads that share a KV head. The scores are never written to memory. If
// there are too few tiles to fill the device, the route is split_streaming: the positions are divided into
// enough splits to fill it, and another dispatch combines the splits.
//
// The route `materialized` is used if D is above 128 and the device can bind the scores, and always if D is
// above 256. It computes scores, softmax and weighted sum in separate dispatches, in tiles of 64 tokens. The
// scores of all heads are stored in memory, but only scores that the mask allows are computed or read.
//
// A step with one token has other routes if D is at most 512. On the route flash_decoding the positions are
// divided into enough splits to fill the device. One workgroup processes one split, for several query heads
// that share a KV head. The workgroup of the last split also appends to the caches. Then another dispatch
// combines the splits. For up to 384 positions the route is `decoding`: each query head has one workgroup,
// which processes all positions.
//
// If only linears read y (fusion rule `attention`), y is written in the order in which their lanes load it.
// The route is then `decoding` for up to 128 positions, and split_decoding for 129 to 2,048 positions. If D
// is above 64, it is `decoding` for up to 256 positions, and split_decoding for 257 to 768 positions. On the
// route split_decoding each query head has four workgroups, and the linears combine their partial results.
// If an operator applies RoPE to q and k right before the attention, the routes for one token apply RoPE
// themselves as they load q and k. This is fusion rule rope_attention. If the heads are normalized before
// RoPE, these routes also compute the norms (rule norm_attention).
//
// Sources: ExecuTorch's sdpa_with_kv_cache; Dao and others, FlashAttention-2 and Flash-Decoding (2023); for
// the window Beltagy and others, Longformer (2020), and Mistral 7B (2023); for the soft cap Gemma 2 (2024);
// for sinks Xiao and others, Efficient Streaming Language Models with Attention Sinks (2023), and gpt-oss
// (2025).
func SDPA(b *graph.Builder, name string, q, k, v, kCache, vCache graph.ValueID, position kind.Int,
	scale, softCap float64, window int, sinks graph.ValueID,
) graph.ValueID {
	return kindSDPA.BuildOne(b, name, kind.Args{
		"q": q, "k": k, "v": v, "k_cache": kCache, "v_cache": vCache, "input_pos": position, "scale": scale,
		"window": window, "soft_cap": softCap, "sinks": sinks,
	})
}

var kindSDPA = kind.Kind{
	Name: "sdpa_with_kv_cache",
	Doc: "Causal attention with a KV cache. Appends k and v to their caches. Each token attends to all " +
		"positions up to its own.",
	Args: []kind.Arg{
		kind.Required("q", kind.F32Tensor),
		kind.Optional("k", kind.F32Tensor, graph.None),
		kind.Optional("v", kind.F32Tensor, graph.None),
		kind.Required("k_cache", kind.CacheState),
		kind.Required("v_cache", kind.CacheState),
		kind.Required("input_pos", kind.SymIntType),
		kind.Optional("scale", kind.FloatType, 0.0),
		kind.Optional("window", kind.IntType, 0),
		kind.Optional("soft_cap", kind.FloatType, 0.0),
		kind.Optional("sinks", kind.F32Tensor, graph.None),
	},
	Constructors: []string{"SDPA"}, Routes: sdpaRouteNames, Add: addSDPA,
}

func addSDPA(c *kind.Call) []graph.ValueID {
	o := &sdpa{
		q: c.ArgTensor("q"), k: c.ArgTensor("k"), v: c.ArgTensor("v"), kCache: c.ArgTensor("k_cache"),
		vCache: c.ArgTensor("v_cache"), position: c.ArgSym("input_pos"), scale: float32(c.ArgFloat("scale")),
		softCap: float32(c.ArgFloat("soft_cap")), window: c.ArgInt("window"), sinks: c.ArgTensor("sinks"),
		splits: graph.None,
	}
	if !o.readDims(c) {
		return nil
	}
	o.y = c.Out("", graph.F32)
	o.makeKernels(c.Builder)
	if o.Routes.Has(sdpaMaterialized) {
		o.scores = c.Temp("scores", graph.F32)
	}
	if o.Routes.Has(sdpaFlashDecoding) || o.Routes.Has(sdpaSplitStreaming) {
		o.parts = c.Temp("parts", graph.F32)
	}
	return c.AddOp(o, o.y)
}

type sdpa struct {
	q, k, v, kCache, vCache, y graph.ValueID // k and v can be None; see reads
	scores, parts              graph.ValueID // scratch
	// spread and splits replace y in a step with one token, if only linears read y (fusion rule `attention`).
	// spread is an interleaved row. splits is a tensor with the partial results of all splits, which is used
	// at some context lengths. Without the rule, spread is nil and splits is None.
	spread   *spreadRow
	splits   graph.ValueID
	rope     *turning // RoPE of q and k (fusion rule rope_attention), or nil
	norms    *rmsNorm // norms of q and k, if the kernels for one token compute them, or nil
	position kind.Int
	scale    float32
	softCap  float32       // soft cap of the scores; 0 for none
	sinks    graph.ValueID // scores without a value, one for each query head; or None

	qHeads, kvHeads, headDim, context int
	window                            int    // largest number of positions that a token sees
	span                              string // label of the visible positions in grids: "window" or "context"
	half                              bool   // the caches are f16
	Last                              bool   // q and y have only the last token
	Routes                            kind.Routes

	update, qk, softmax, av, streaming, streamingSplit, reduce, reduceRow *graph.Kernel

	whole, share, split decodeShape
	stream              streamShape
	streamParts         int // largest number of rows of a head's partial results in split_streaming
}

// The routes and the dispatch slots of attention.
const (
	sdpaFlashDecoding = iota
	sdpaDecoding
	sdpaMaterialized
	sdpaStreaming
	sdpaSplitStreaming
	sdpaSplitDecoding
)

const (
	slotRope = iota // applies RoPE to q and k
	slotUpdateCache
	slotQK
	slotSoftmax
	slotAV
	slotStreaming
	slotDecode
	slotSplit
	slotReduce
)

var sdpaRouteNames = []string{
	sdpaFlashDecoding: "flash_decoding", sdpaDecoding: "decoding", sdpaMaterialized: "materialized",
	sdpaStreaming: "streaming", sdpaSplitStreaming: "split_streaming", sdpaSplitDecoding: "split_decoding",
}

const (
	sdpaTile = 64 // size of a tile of scores, in tokens and in positions
	// sdpaWidest is the largest head dim for which a workgroup of the streaming kernel has enough lanes. The
	// kernels for one token have another limit, decodeWidest. If the head dim is above sdpaRoomy, the
	// streaming kernel needs many registers, so it is used only if the device cannot bind the scores.
	sdpaWidest, sdpaRoomy = 256, 128
)

// readDims sets the numbers of heads and the sizes of o from the dims of the arguments. If these dims do not
// fit each other, readDims records an error and returns false.
func (o *sdpa) readDims(c *kind.Call) bool {
	b := c.Builder
	if (o.k == graph.None) != (o.v == graph.None) {
		c.Fail("k or v is missing; want both, or none of them")
		return false
	}
	q, cache := b.MaxDims(o.q), b.MaxDims(o.kCache)
	all, k, v := o.q, cache, cache
	if !o.reads() {
		all, k, v = o.k, b.MaxDims(o.k), b.MaxDims(o.v)
	}
	if len(q) != 4 || len(k) != 4 || len(cache) != 4 || q[0] != 1 || k[0] != 1 || cache[0] != 1 {
		c.Fail("q has dims %v, k has dims %v and the cache has dims %v; want [1, tokens, heads, head dim] for each",
			q, k, cache)
		return false
	}
	o.qHeads, o.kvHeads, o.headDim, o.context = q[2], k[2], q[3], cache[1]
	half := b.DType(o.kCache)
	switch {
	case !slices.Equal(k, v):
		c.Fail("k has dims %v and v has dims %v, want the same dims", k, v)
	case !slices.Equal(cache, b.MaxDims(o.vCache)) || half != b.DType(o.vCache):
		c.Fail("k_cache has dims %v and type %s, and v_cache has dims %v and type %s; want the same dims and type",
			cache, half, b.MaxDims(o.vCache), b.DType(o.vCache))
	case k[3] != o.headDim || cache[3] != o.headDim || cache[2] != o.kvHeads:
		c.Fail("q has dims %v, k has dims %v and the cache has dims %v; all need the same head dim, and k needs as many heads as the cache",
			q, k, cache)
	case o.headDim%4 != 0:
		c.Fail("head dim is %d, want a multiple of 4", o.headDim)
	case o.qHeads%o.kvHeads != 0:
		c.Fail("number of query heads is %d, want a multiple of the %d KV heads", o.qHeads, o.kvHeads)
	case b.MinDims(all)[1] > o.context:
		c.Fail("a step has at least %d tokens, but the cache has only %d positions", b.MinDims(all)[1],
			o.context)
	case !(o.softCap >= 0): // also refuses NaN
		c.Fail("soft cap is %g, want a number above 0, or 0 for none", o.softCap)
	case o.sinks != graph.None && !(slices.Equal(b.MaxDims(o.sinks), []int{o.qHeads}) &&
		slices.Equal(b.MinDims(o.sinks), []int{o.qHeads})):
		c.Fail("sinks have dims %v, want [%d]: one number for each query head", b.MaxDims(o.sinks), o.qHeads)
	case o.window < 0:
		c.Fail("window is %d positions, want at least 1, or 0 for attention without a window", o.window)
	default:
		if o.span = "window"; o.window == 0 || o.window >= o.context {
			o.window, o.span = o.context, "context"
		}
		o.half, o.Last = half == graph.F16, !o.reads() && q[1] == 1 && k[1] > 1
		if o.scale == 0 {
			o.scale = float32(1 / math.Sqrt(float64(o.headDim)))
		}
		o.chooseRoutes(b)
		return true
	}
	return false
}

// chooseRoutes sets the table of routes. The table shows for how many tokens in a step each route is
// possible.
func (o *sdpa) chooseRoutes(b *graph.Builder) {
	all := o.ofAll()
	fewest, most := b.MinDims(all)[1], min(b.MaxDims(all)[1], o.context)
	o.Routes = kind.Routes{
		sdpaFlashDecoding:  {Name: "flash_decoding", Only: true, Why: kind.OneToken},
		sdpaDecoding:       {Name: "decoding", Only: true, Why: kind.FewPositions},
		sdpaMaterialized:   {Name: "materialized", Only: true, Why: kind.ManyTokens},
		sdpaStreaming:      {Name: "streaming", Why: kind.ManyTokens},
		sdpaSplitStreaming: {Name: "split_streaming", Only: true, Aside: true, Why: kind.FewTokens},
		sdpaSplitDecoding:  {Name: "split_decoding", Only: true, Aside: true, Why: kind.SomePositions},
	}
	if fewest == 1 && o.headDim <= decodeWidest {
		o.Routes[sdpaDecoding].UpTo, o.Routes[sdpaFlashDecoding].UpTo, fewest = 1, 1, 2
	}
	limit, wide := int64(b.Limits().MaxStorageBinding), o.headDim > sdpaRoomy
	fit := sort.Search(most, func(n int) bool { return o.scoresBytes(o.queries(n+1)) > limit })
	if o.stream = o.streams(b.Limits()); o.stream.down == 0 {
		fit = most
	}
	if fit >= fewest {
		o.Routes[sdpaMaterialized].UpTo = fit
	}
	if wide {
		o.Routes[sdpaMaterialized].Why, o.Routes[sdpaStreaming].Why = kind.WideHead, kind.ManyScores
	}
	switch {
	case o.stream.down == 0 || most < fewest:
	case wide && fit < most:
		o.Routes[sdpaStreaming].UpTo = kind.Always
	case !wide:
		o.Routes[sdpaMaterialized].Aside = true
		o.Routes[sdpaStreaming].UpTo = kind.Always
		for tokens := max(2, fewest); tokens <= most; tokens++ {
			queries := o.queries(tokens)
			if n := o.mostStreamSplits(queries, o.spanOf(queries)); n > 1 {
				o.Routes[sdpaSplitStreaming].UpTo = tokens
				o.streamParts = max(o.streamParts, n*queries)
			}
		}
	}
}

// scoresBytes returns the size in bytes of the scores of `tokens` tokens at the longest context.
func (o *sdpa) scoresBytes(tokens int) int64 {
	return 4 * int64(o.qHeads) * int64(tokens) * int64(stride(o.spanOf(tokens)))
}

// ofAll() returns the argument whose dims show the number of tokens in the step: q, or k if q has only the
// last token.
func (o *sdpa) ofAll() graph.ValueID {
	if o.Last {
		return o.k
	}
	return o.q
}

// reads reports whether the operator only reads the caches, because another operator has appended the keys
// and values of the step.
func (o *sdpa) reads() bool { return o.k == graph.None }

// ownHeads returns the number of heads of the keys and values that the operator appends to the caches.
func (o *sdpa) ownHeads() int {
	if o.reads() {
		return 0
	}
	return o.kvHeads
}

// queries returns the number of tokens in q if k has `tokens` tokens.
func (o *sdpa) queries(tokens int) int {
	if o.Last {
		return 1
	}
	return tokens
}

// spanOf(tokens) returns the largest number of positions that `tokens` consecutive tokens can see. A position
// that several of the tokens see counts once.
func (o *sdpa) spanOf(tokens int) int { return min(o.context, tokens+o.window-1) }

// stride returns the number of scores from the start of one row of scores to the start of the next row. A row
// has one score for each position.
func stride(positions int) int { return shape.DivUp(positions, 4) * 4 }

func (o *sdpa) makeKernels(b *graph.Builder) {
	quads := o.headDim / 4
	o.update = kind.NewKernel(b, "sdpa_update_cache", shaders.Constants{
		"Lanes":     kind.ThreadLanes,
		"HalfCache": o.half,
	})
	o.qk = kind.NewKernel(b, "sdpa_qk",
		shaders.Constants{
			"Tile": sdpaTile, "Quads": 8, "HeadQuads": quads, "HalfCache": o.half, "SoftCap": o.softCap,
		})
	o.softmax = kind.NewKernel(b, "sdpa_softmax",
		shaders.Constants{
			"Lanes": kind.LanesFor(b, o.spanOf(b.MaxDims(o.q)[1])), "Sinks": o.sinks != graph.None,
		})
	o.av = kind.NewKernel(b, "sdpa_av",
		shaders.Constants{"Tile": sdpaTile, "Quads": 8, "HeadQuads": quads, "HalfCache": o.half})
	if o.Routes.Has(sdpaStreaming) {
		s := &o.stream
		c := shaders.Constants{
			"Across": s.across, "Down": s.down, "Quads": s.quads, "HeadQuads": quads,
			"Group": o.qHeads / o.kvHeads, "HalfCache": o.half, "Split": false, "SoftCap": o.softCap,
			"Sinks": o.sinks != graph.None,
		}
		o.streaming = kind.NewKernel(b, "sdpa_streaming", c)
		if o.Routes.Has(sdpaSplitStreaming) {
			c["Split"] = true
			o.streamingSplit = kind.NewKernelAs(b, "sdpa_streaming_split", "sdpa_streaming", c)
		}
	}
	if o.Routes.Has(sdpaFlashDecoding) {
		o.makeDecodeKernels(b)
	}
	o.reduce = o.makeReduce(b, 0)
}

func (o *sdpa) Spec() graph.Spec {
	s := graph.Spec{
		Kind: "sdpa_with_kv_cache", Routes: sdpaRouteNames,
		Inputs: kind.Operands(present(o.q, o.k, o.v), o.position),
		State:  []graph.ValueID{o.kCache, o.vCache}, Outputs: []graph.ValueID{o.y},
		Slots: []graph.Slot{
			slotRope: {Label: "rope"}, slotUpdateCache: {Label: "update_cache"}, slotQK: {Label: "qk"},
			slotSoftmax: {Label: "softmax"}, slotAV: {Label: "av"}, slotStreaming: {Label: "streaming"},
			slotDecode: {Label: "decode"}, slotSplit: {Label: "fd_split"}, slotReduce: {Label: "fd_reduce"},
		},
		Attrs: map[string]any{
			"input_pos": o.position.Attr(), "scale": o.scale, "heads": o.qHeads,
			"kv_heads": o.kvHeads,
		},
	}
	if o.window < o.context {
		s.Attrs["window"] = o.window
	}
	if o.softCap > 0 {
		s.Attrs["soft_cap"] = o.softCap
	}
	for i := range s.Slots {
		s.Slots[i].Uses = make([]graph.Use, len(sdpaRouteNames))
	}
	uses := func(route, slot int, k *graph.Kernel, bindings ...graph.Binding) {
		s.Slots[slot].Uses[route] = graph.Use{Kernel: k, Bind: bindings}
	}
	q, k, v, y := graph.Bind("q", o.q), graph.Bind("k", o.k), graph.Bind("v", o.v), graph.Bind("y", o.y)
	kCache, vCache := graph.Bind("k_cache", o.kCache), graph.Bind("v_cache", o.vCache)
	parts := graph.Bind("parts", o.parts)
	var sinks []graph.Binding
	if o.sinks != graph.None {
		s.Inputs = append(s.Inputs, o.sinks)
		sinks = []graph.Binding{graph.Bind("sinks", o.sinks)}
	}
	// The function `with` inserts the binding of the sinks before the last of its arguments. Without sinks it
	// inserts nothing.
	with := func(bindings ...graph.Binding) []graph.Binding {
		return slices.Insert(bindings, len(bindings)-1, sinks...)
	}
	if o.Routes.Has(sdpaFlashDecoding) || o.Routes.Has(sdpaSplitStreaming) {
		s.Scratch = append(s.Scratch, o.parts)
	}
	if o.Routes.Has(sdpaFlashDecoding) {
		in := []graph.Binding{q, k, v}
		if o.norms != nil {
			for i, n := range o.norms.norms() {
				in[i].Value = n.x
			}
		}
		if o.reads() {
			in = in[:1]
		}
		if o.rope != nil {
			in = append(in, graph.Bind("cosine", o.rope.parts().cos), graph.Bind("sine", o.rope.parts().sin))
		}
		if o.norms != nil {
			for i, n := range o.norms.norms() {
				in = append(in, graph.Bind([]string{"q_weight", "k_weight"}[i], n.weight))
			}
		}
		in = slices.Concat(in, sinks, []graph.Binding{kCache, vCache})
		row := y
		if o.spread != nil {
			s.Outputs = append(s.Outputs, o.spread.value, o.splits)
			splits := graph.Bind("parts", o.splits)
			uses(sdpaSplitDecoding, slotDecode, o.share.NewKernel, append(slices.Clip(in), splits)...)
			row = graph.Bind("y", o.spread.value)
		}
		uses(sdpaDecoding, slotDecode, o.whole.NewKernel, append(slices.Clip(in), row)...)
		uses(sdpaFlashDecoding, slotSplit, o.split.NewKernel, append(slices.Clip(in), parts)...)
		uses(sdpaFlashDecoding, slotReduce, o.reduceRow, parts, row)
	}
	if o.rope != nil {
		rope := o.rope.parts()
		s.Inputs = append(s.Inputs, rope.cos, rope.sin)
		s.Scratch = append(s.Scratch, rope.outputs()...)
		q, k = graph.Bind("q", rope.yq), graph.Bind("k", rope.yk)
		turn := rope.slots()[0].Uses[0]
		for _, route := range []int{sdpaMaterialized, sdpaStreaming, sdpaSplitStreaming} {
			if o.Routes.Has(route) {
				s.Slots[slotRope].Uses[route] = turn
			}
		}
	}
	if o.norms != nil {
		for _, n := range o.norms.norms() {
			s.Inputs = append(s.Inputs, n.x, n.weight)
		}
	}
	for _, route := range []int{sdpaMaterialized, sdpaStreaming, sdpaSplitStreaming} {
		if o.Routes.Has(route) && !o.reads() {
			uses(route, slotUpdateCache, o.update, k, v, kCache, vCache)
		}
	}
	if o.Routes.Has(sdpaMaterialized) {
		s.Scratch = append(s.Scratch, o.scores)
		scores := graph.Bind("scores", o.scores)
		uses(sdpaMaterialized, slotQK, o.qk, q, kCache, scores)
		uses(sdpaMaterialized, slotSoftmax, o.softmax, with(scores)...)
		uses(sdpaMaterialized, slotAV, o.av, graph.Bind("weights", o.scores), vCache, y)
	}
	if o.Routes.Has(sdpaStreaming) {
		uses(sdpaStreaming, slotStreaming, o.streaming, with(q, kCache, vCache, y)...)
	}
	if o.Routes.Has(sdpaSplitStreaming) {
		uses(sdpaSplitStreaming, slotStreaming, o.streamingSplit, with(q, kCache, vCache, parts)...)
		uses(sdpaSplitStreaming, slotReduce, o.reduce, parts, y)
	}
	return s
}

// Corners includes the largest number of tokens at the longest context, where the tensor of scores is
// largest. The number of splits can be largest at other positions, so Corners also includes these.
func (o *sdpa) Corners(r *graph.Ranges) []graph.Corner {
	first, last := o.position.Span(r)
	all := o.ofAll()
	fewest, most := r.Min(all)[1], min(r.Max(all)[1], o.context-first)
	at := func(tokens, position int) graph.Corner {
		c := o.position.Set(min(position, last))
		set := func(dim, tokens int, values ...graph.ValueID) {
			for _, v := range values {
				dims := slices.Clone(r.Max(v))
				dims[dim] = tokens
				c = append(c, graph.At{Value: v, Dims: dims})
			}
		}
		set(1, o.queries(tokens), o.q)
		set(1, tokens, present(o.k, o.v)...)
		if o.rope != nil && o.rope.pairs == neighbourPairs {
			set(0, tokens, o.rope.parts().cos, o.rope.parts().sin)
		}
		return c
	}
	var corners []graph.Corner
	for _, tokens := range append(o.Routes.Most(most), most, fewest) {
		if tokens >= fewest && tokens <= most {
			corners = append(corners, at(tokens, max(o.context-tokens, first)))
		}
	}
	if o.Routes.Has(sdpaFlashDecoding) {
		_, mostLeft := o.leftSpan()
		// The number of splits is largest either at the end of the context, or if all splits have the same
		// number of blocks.
		even := o.mostSplits() * o.split.block
		for _, span := range [...]int{o.spanOf(1) / even * even, fewDecoded, mostLeft} {
			corners = append(corners, at(1, max(first, min(span, o.spanOf(1))-1)))
		}
	}
	if o.Routes.Has(sdpaSplitStreaming) {
		// Add three corners: at the last position, the largest number of tokens on this route; at the first
		// position, the largest number of tokens for which the positions are not split; and the number of
		// tokens and position with the most workgroups.
		upTo := min(o.Routes[sdpaSplitStreaming].UpTo, most)
		whole, tokens, position, groups := fewest, upTo, first, 0
		for n := max(2, fewest); n <= most; n++ {
			queries := o.queries(n)
			if o.mostStreamSplits(queries, o.spanAt(first+n, queries)) == 1 {
				whole = n
			}
			longest := o.spanOf(queries)
			for _, span := range [...]int{
				longest, 8 * o.stream.across * o.mostStreamSplits(queries, longest),
			} {
				p := min(max(span-n, first), last, o.context-n)
				splits, _ := o.streamSplits(queries, o.spanAt(p+n, queries))
				if most := splits * o.streamTiles(queries); n <= upTo && most > groups {
					tokens, position, groups = n, p, most
				}
			}
		}
		corners = append(corners, at(upTo, max(o.context-upTo, first)), at(whole, first),
			at(tokens, position))
	}
	return append(corners, at(fewest, first))
}

func (o *sdpa) Plan(p *graph.Planner) error {
	q, tokens, position := p.Dims(o.q), p.Dim(o.ofAll(), 1), o.position.At(p)
	context, queries := position+tokens, o.queries(tokens)
	switch {
	case !o.reads() && (q[1] != queries || p.Dim(o.k, 1) != tokens || p.Dim(o.v, 1) != tokens):
		return p.Errorf("q has %d tokens, k has %d and v has %d; want %d tokens in q, and %d in each of k and v",
			q[1], p.Dim(o.k, 1), p.Dim(o.v, 1), queries, tokens)
	case q[2] != o.qHeads || q[3] != o.headDim:
		return p.Errorf("q has dims %v, want %d heads of %d elements each", q, o.qHeads, o.headDim)
	case position < 0:
		return p.Errorf("position is %d, want at least 0", position)
	case context > o.context:
		return p.Errorf("position is %d and k has %d tokens, so the cache needs %d positions, but it has %d",
			position, tokens,
			context, o.context)
	}
	if o.rope != nil {
		if err := o.rope.check(p); err != nil {
			return err
		}
	}
	route := o.choose(p, tokens, position)
	o.give(p, route, q)
	switch route {
	case sdpaFlashDecoding:
		o.planSplits(p, position)
	case sdpaDecoding:
		o.planWhole(p, position)
	case sdpaSplitDecoding:
		o.planLeftSplits(p, position)
	case sdpaStreaming:
		o.planUpdate(p, tokens, position)
		o.planStreaming(p, queries, context-queries, 1, 0)
	case sdpaSplitStreaming:
		splits, length := o.streamSplits(queries, o.spanAt(context, queries))
		o.planUpdate(p, tokens, position)
		o.planStreaming(p, queries, context-queries, splits, length)
		o.planReduce(p, queries, splits)
	default:
		o.planUpdate(p, tokens, position)
		o.planMaterialized(p, queries, context-queries)
	}
	return nil
}

// cacheBytes returns the size in bytes of one position in one of the caches.
func (o *sdpa) cacheBytes() int64 {
	n := 4 * int64(o.kvHeads) * int64(o.headDim)
	if o.half {
		n /= 2
	}
	return n
}

// start returns the first position that the token at `position` sees.
func (o *sdpa) start(position int) int { return max(0, position+1-o.window) }

// spanAt returns the number of positions that the last `tokens` tokens see if there are `context` tokens. A
// position that several of the tokens see counts once.
func (o *sdpa) spanAt(context, tokens int) int { return context - o.start(context-tokens) }

// seen(...) returns the number of scores that the mask allows, summed over all heads.
func (o *sdpa) seen(tokens, position int) int64 {
	whole := min(tokens, max(0, position+tokens+1-o.window)) // tokens that see a full window
	n, p := int64(tokens-whole), int64(position)
	return int64(o.qHeads) * (n*p + n*(n+1)/2 + int64(whole)*int64(o.window))
}

// queryBytes returns the size of q in bytes, which is also the size of y.
func (o *sdpa) queryBytes(tokens int) int64 {
	return 4 * int64(tokens) * int64(o.qHeads) * int64(o.headDim)
}

func (o *sdpa) planUpdate(p *graph.Planner, tokens, position int) {
	if o.rope != nil {
		o.rope.turn(p)
	}
	if o.reads() {
		return
	}
	row := o.kvHeads * o.headDim
	l := p.Dispatch(slotUpdateCache, p.Vectors(tokens*row, 4, kind.ThreadLanes))
	l.Params.U32("n", tokens*row/4).U32("first", position*row/4)
	l.Bytes = 2 * int64(tokens) * (4*int64(row) + o.cacheBytes())
}

func (o *sdpa) planMaterialized(p *graph.Planner, tokens, position int) {
	context, start := position+tokens, o.start(position)
	span := o.spanAt(context, tokens)
	stride, seen := stride(span), o.seen(tokens, position)
	p.SetDims(o.scores, o.qHeads, tokens, stride)

	l := p.Dispatch(slotQK, p.Tiles(256, grid.Split(o.span, span, sdpaTile),
		grid.Split("tokens", tokens, sdpaTile), grid.Each("heads", o.qHeads)))
	l.Params.U32("tokens", tokens).U32("context", context).U32("position", position).
		U32("start", start).U32("window", o.window).U32("stride", stride).
		U32("q_heads", o.qHeads).U32("kv_heads", o.kvHeads).F32("scale", o.scale)
	l.Bytes = o.queryBytes(tokens) + int64(span)*o.cacheBytes() + 4*seen
	l.FLOPs = seen * (2*int64(o.headDim) + o.capFLOPs())

	rows := o.qHeads * tokens
	l = p.Dispatch(slotSoftmax, p.Rows(int(o.softmax.WorkgroupSize[0]), span,
		grid.Each("heads", o.qHeads), grid.Each("tokens", tokens)))
	l.Params.U32("rows", rows).U32("tokens", tokens).U32("position", position).
		U32("start", start).U32("window", o.window).U32("stride", stride)
	l.Bytes = 8 * seen
	l.FLOPs = 5 * seen

	l = p.Dispatch(slotAV, p.Tiles(256, grid.Split("head dim", o.headDim, 64),
		grid.Split("tokens", tokens, sdpaTile), grid.Each("heads", o.qHeads)))
	l.Params.U32("tokens", tokens).U32("context", context).U32("position", position).
		U32("start", start).U32("window", o.window).
		U32("quads", stride/4).U32("q_heads", o.qHeads).U32("kv_heads", o.kvHeads)
	l.Bytes = 4*seen + int64(span)*o.cacheBytes() + o.queryBytes(tokens)
	l.FLOPs = 2 * seen * int64(o.headDim)
}
