package ops

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/x448/float16"

	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/engine/graph/grid"
	"gpuscope/ops/internal/shape"
	"gpuscope/ops/kind"
	"gpuscope/ops/reference"
	"gpuscope/shaders"
	"gpuscope/trace"
)

// SDPA adds sdpa_with_kv_cache: it appends k and v to their caches at a position and attends over all
// positions up to each token's own.
//
//	q       [1, S, Hq, D], D a multiple of 4, or [1, 1, Hq, D] of the last token alone
//	k, v    [1, S, Hkv, D], Hkv divides Hq: query head h has KV head h / (Hq/Hkv)
//	caches  [1, C, Hkv, D], State, f32 or f16
//	y       dims of q, softmax(scale * q * k' over positions 0 to position + s) * v
//
// A scale of 0 stands for 1 / sqrt(D). With a window a token sees that many positions at most: its own and
// those right before it; 0 stands for all. Position + S is at most C; what the caches hold at and after that,
// and before the window of the first token, is never read.
//
// Several tokens take streaming: the caches are updated, and each workgroup goes through the positions with a
// tile of 64 rows, which are the tokens of query heads that share a KV head, and keeps no scores. Where tiles
// are too few to fill the device it is split_streaming: the positions are cut into as many splits as do, and
// these put together as those of one token are. With a D over 128 they take the materialized route, where the
// device binds the scores, with one over 256 always: scores, softmax and weighted sum are one after the
// other, in tiles of 64 tokens; the scores of all heads are in memory, but only those that the mask lets
// through are computed or read. One token (D up to 256) takes flash_decoding: the positions are cut into as
// many splits as fill the device, whatever their number, each attended over by one workgroup for query heads
// that share a KV head; that of the last split appends to the caches; then the splits are put together. Up to
// 384 positions it is decoding: one workgroup for each query head attends over them all. If only linears read
// y (fusion rule attention), y is written in the order in which their lanes load it. Then decoding is used up
// to 128 positions, and split_decoding from 128 to 2,048 (if D > 64: from 256 to 768): it runs four
// workgroups for each query head, and the linears combine the partial results. All routes rotate q and k as
// they load them if a rotation comes first (fusion rule rope_attention), and normalize heads if norms come
// before that (norm_attention). Sources: ExecuTorch's sdpa_with_kv_cache; Dao and others, FlashAttention-2
// and Flash-Decoding (2023); for the window Beltagy and others, Longformer (2020), and Mistral 7B (2023).
func SDPA(b *graph.Builder, name string, q, k, v, kCache, vCache graph.ValueID, position kind.Int,
	scale float64, window int,
) graph.ValueID {
	return kindSDPA.BuildOne(b, name, kind.Args{
		"q": q, "k": k, "v": v, "k_cache": kCache, "v_cache": vCache, "input_pos": position, "scale": scale,
		"window": window,
	})
}

var kindSDPA = kind.Kind{
	Name: "sdpa_with_kv_cache",
	Doc:  "Appends k and v to their caches at a position and attends over all positions up to each token's own.",
	Args: []kind.Arg{
		kind.Required("q", kind.F32Tensor),
		kind.Required("k", kind.F32Tensor),
		kind.Required("v", kind.F32Tensor),
		kind.Required("k_cache", kind.CacheState),
		kind.Required("v_cache", kind.CacheState),
		kind.Required("input_pos", kind.SymIntType),
		kind.Optional("scale", kind.FloatType, 0.0),
		kind.Optional("window", kind.IntType, 0),
	},
	Constructors: []string{"SDPA"}, Routes: sdpaRouteNames, Add: addSDPA,
}

func addSDPA(c *kind.Call) []graph.ValueID {
	o := &sdpa{
		q: c.ArgTensor("q"), k: c.ArgTensor("k"), v: c.ArgTensor("v"), kCache: c.ArgTensor("k_cache"),
		vCache: c.ArgTensor("v_cache"), position: c.ArgSym("input_pos"), scale: float32(c.ArgFloat("scale")),
		window: c.ArgInt("window"), splits: graph.None,
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
	q, k, v, kCache, vCache, y graph.ValueID
	scores, parts              graph.ValueID // scratch
	// spread is what is given in place of y of one token, where products alone read it, and splits where the
	// token sees some positions (fusion rule attention); or nil, and None.
	spread   *spreadRow
	splits   graph.ValueID
	rope     *turning // of q and k, where it is the operator's own
	norms    *rmsNorm // of q and k, which kernels of one token do; or nil
	position kind.Int
	scale    float32

	qHeads, kvHeads, headDim, context int
	window                            int    // that a token sees at most; the context where nothing limits it
	span                              string // what grids call the positions that a step sees
	half                              bool   // caches
	Last                              bool   // q and y are of the last token alone
	Routes                            kind.Routes

	update, qk, softmax, av, streaming, streamingSplit, reduce, reduceRow *graph.Kernel

	whole, share, split decodeShape
	stream              streamShape
	streamParts         int // rows of y that split_streaming makes of each head at most, each split's own
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
	slotRope = iota // as in a rotation alone
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
	sdpaTile = 64 // tokens, and positions, of a tile
	// sdpaWidest is the widest head whose columns a workgroup of the streaming and flash_decoding kernels has
	// lanes for. Heads wider than sdpaRoomy take so many registers of the streaming kernel that it is the way
	// only where there is no memory for scores.
	sdpaWidest, sdpaRoomy = 256, 128
)

// readDims takes heads and sizes from the arguments, and says whether they fit each other.
func (o *sdpa) readDims(c *kind.Call) bool {
	b := c.Builder
	q, k, cache := b.MaxDims(o.q), b.MaxDims(o.k), b.MaxDims(o.kCache)
	if len(q) != 4 || len(k) != 4 || len(cache) != 4 || q[0] != 1 || k[0] != 1 || cache[0] != 1 {
		c.Fail("q is %v, k %v and the cache %v, want [1, S, H, D] each", q, k, cache)
		return false
	}
	o.qHeads, o.kvHeads, o.headDim, o.context = q[2], k[2], q[3], cache[1]
	half := b.DType(o.kCache)
	switch {
	case !slices.Equal(k, b.MaxDims(o.v)):
		c.Fail("k is %v and v %v, want the same", k, b.MaxDims(o.v))
	case !slices.Equal(cache, b.MaxDims(o.vCache)) || half != b.DType(o.vCache):
		c.Fail("the caches are %v %s and %v %s, want the same", cache, half, b.MaxDims(o.vCache),
			b.DType(o.vCache))
	case k[3] != o.headDim || cache[3] != o.headDim || cache[2] != o.kvHeads:
		c.Fail("q is %v, k %v and the cache %v, want one D, and as many heads in k as in the cache", q, k,
			cache)
	case o.headDim%4 != 0:
		c.Fail("heads of %d elements, want a multiple of 4", o.headDim)
	case o.qHeads%o.kvHeads != 0:
		c.Fail("%d query heads on %d KV heads, want a multiple", o.qHeads, o.kvHeads)
	case b.MinDims(o.k)[1] > o.context:
		c.Fail("at least %d tokens for a cache of %d positions", b.MinDims(o.k)[1], o.context)
	case o.window < 0:
		c.Fail("a window of %d positions, want at least 1, or 0 for none", o.window)
	default:
		if o.span = "window"; o.window == 0 || o.window >= o.context {
			o.window, o.span = o.context, "context"
		}
		o.half, o.Last = half == graph.F16, q[1] == 1 && k[1] > 1
		if o.scale == 0 {
			o.scale = float32(1 / math.Sqrt(float64(o.headDim)))
		}
		o.chooseRoutes(b)
		return true
	}
	return false
}

// chooseRoutes settles which live numbers of tokens take which route.
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
	if fewest == 1 && o.headDim <= sdpaWidest {
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

// streamShape is how a workgroup of the streaming kernel divides its work: lanes across share 8 rows, with 4
// positions and some columns each, and lanes down have other rows. Of q, k and v quads times 4 columns, or
// positions, are in workgroup memory at a time.
type streamShape struct{ across, down, quads int }

// streamShapes are in the order of preference, by what is best on an H200.
var streamShapes = []streamShape{{16, 8, 4}, {16, 4, 2}, {8, 4, 2}}

// streams is the first shape that a device has the workgroup memory for; the zero shape for wider heads.
func (o *sdpa) streams(limits *gpu.Limits) streamShape {
	for _, s := range streamShapes {
		rows := s.across / s.quads * s.down * (10*s.quads + 1)
		columns := s.across * (max(6*s.quads, 4*s.quads*shape.DivUp(o.headDim/4, s.across)) + 1)
		if o.headDim <= sdpaWidest && 16*(rows+columns+4*s.down) <= int(limits.MaxWorkgroupStorage) {
			return s
		}
	}
	return streamShape{}
}

// What is best on an H200 (BenchmarkPrefillAttention): streamGroups workgroups of splits at most, and
// fewestSplits at least, since another dispatch puts them together.
const (
	streamGroups = 256
	fewestSplits = 4
)

// streamTiles is how many tiles of rows some tokens make, over all heads.
func (o *sdpa) streamTiles(tokens int) int {
	return shape.DivUp(tokens*o.qHeads/o.kvHeads, 8*o.stream.down) * o.kvHeads
}

// mostStreamSplits is how many splits of some positions, of two tiles of them each at least, fill the device;
// 1 where these are too few.
func (o *sdpa) mostStreamSplits(tokens, span int) int {
	if n := min(streamGroups/o.streamTiles(tokens), span/(8*o.stream.across)); n >= fewestSplits {
		return n
	}
	return 1
}

// streamSplits are how many parts some positions are cut into, each of whole tiles but the last, and how many
// positions those have.
func (o *sdpa) streamSplits(tokens, span int) (n, length int) {
	tile := 4 * o.stream.across
	length = tile * shape.DivUp(shape.DivUp(span, tile), o.mostStreamSplits(tokens, span))
	return shape.DivUp(span, length), length
}

// scoresBytes is the size of the scores of some tokens with the longest context after them.
func (o *sdpa) scoresBytes(tokens int) int64 {
	return 4 * int64(o.qHeads) * int64(tokens) * int64(stride(o.spanOf(tokens)))
}

// ofAll is an argument that has all tokens: q where it is not of the last alone.
func (o *sdpa) ofAll() graph.ValueID {
	if o.Last {
		return o.k
	}
	return o.q
}

// queries is of how many of some tokens q is.
func (o *sdpa) queries(tokens int) int {
	if o.Last {
		return 1
	}
	return tokens
}

// spanOf is how many positions some tokens see together at most.
func (o *sdpa) spanOf(tokens int) int { return min(o.context, tokens+o.window-1) }

// stride is how many scores apart two rows are that have scores of so many positions.
func stride(positions int) int { return shape.DivUp(positions, 4) * 4 }

func (o *sdpa) makeKernels(b *graph.Builder) {
	quads := o.headDim / 4
	o.update = kind.NewKernel(b, "sdpa_update_cache", shaders.Constants{
		"Lanes":     kind.ThreadLanes,
		"HalfCache": o.half,
	})
	o.qk = kind.NewKernel(b, "sdpa_qk",
		shaders.Constants{"Tile": sdpaTile, "Quads": 8, "HeadQuads": quads, "HalfCache": o.half})
	o.softmax = kind.NewKernel(b, "sdpa_softmax",
		shaders.Constants{"Lanes": kind.LanesFor(b, o.spanOf(b.MaxDims(o.q)[1]))})
	o.av = kind.NewKernel(b, "sdpa_av",
		shaders.Constants{"Tile": sdpaTile, "Quads": 8, "HeadQuads": quads, "HalfCache": o.half})
	if o.Routes.Has(sdpaStreaming) {
		s := &o.stream
		c := shaders.Constants{
			"Across": s.across, "Down": s.down, "Quads": s.quads, "HeadQuads": quads,
			"Group": o.qHeads / o.kvHeads, "HalfCache": o.half, "Split": false,
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
		Inputs: kind.Operands([]graph.ValueID{o.q, o.k, o.v}, o.position),
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
	for i := range s.Slots {
		s.Slots[i].Uses = make([]graph.Use, len(sdpaRouteNames))
	}
	uses := func(route, slot int, k *graph.Kernel, bindings ...graph.Binding) {
		s.Slots[slot].Uses[route] = graph.Use{Kernel: k, Bind: bindings}
	}
	q, k, v, y := graph.Bind("q", o.q), graph.Bind("k", o.k), graph.Bind("v", o.v), graph.Bind("y", o.y)
	kCache, vCache := graph.Bind("k_cache", o.kCache), graph.Bind("v_cache", o.vCache)
	parts := graph.Bind("parts", o.parts)
	if o.Routes.Has(sdpaFlashDecoding) || o.Routes.Has(sdpaSplitStreaming) {
		s.Scratch = append(s.Scratch, o.parts)
	}
	if o.Routes.Has(sdpaFlashDecoding) {
		in := []graph.Binding{q, k, v}
		if o.norms != nil {
			in[0], in[1] = graph.Bind("q", o.norms.x), graph.Bind("k", o.norms.other.x)
		}
		if o.rope != nil {
			in = append(in, graph.Bind("cosine", o.rope.parts().cos), graph.Bind("sine", o.rope.parts().sin))
		}
		if o.norms != nil {
			in = append(in, graph.Bind("q_weight", o.norms.weight), graph.Bind("k_weight",
				o.norms.other.weight))
		}
		in = append(in, kCache, vCache)
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
		s.Scratch = append(s.Scratch, rope.yq, rope.yk)
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
	if o.Routes.Has(sdpaMaterialized) {
		s.Scratch = append(s.Scratch, o.scores)
		scores := graph.Bind("scores", o.scores)
		uses(sdpaMaterialized, slotUpdateCache, o.update, k, v, kCache, vCache)
		uses(sdpaMaterialized, slotQK, o.qk, q, kCache, scores)
		uses(sdpaMaterialized, slotSoftmax, o.softmax, scores)
		uses(sdpaMaterialized, slotAV, o.av, graph.Bind("weights", o.scores), vCache, y)
	}
	if o.Routes.Has(sdpaStreaming) {
		uses(sdpaStreaming, slotUpdateCache, o.update, k, v, kCache, vCache)
		uses(sdpaStreaming, slotStreaming, o.streaming, q, kCache, vCache, y)
	}
	if o.Routes.Has(sdpaSplitStreaming) {
		uses(sdpaSplitStreaming, slotUpdateCache, o.update, k, v, kCache, vCache)
		uses(sdpaSplitStreaming, slotStreaming, o.streamingSplit, q, kCache, vCache, parts)
		uses(sdpaSplitStreaming, slotReduce, o.reduce, parts, y)
	}
	return s
}

// Corners: the most tokens with the longest context after them have the largest scores; splits are the most
// at other positions, too.
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
		set(1, tokens, o.k, o.v)
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
		// There are the most splits where each has the same number of blocks, and else at the end.
		even := o.mostSplits() * o.split.block
		for _, span := range [...]int{o.spanOf(1) / even * even, fewDecoded, mostLeft} {
			corners = append(corners, at(1, max(first, min(span, o.spanOf(1))-1)))
		}
	}
	if o.Routes.Has(sdpaSplitStreaming) {
		// The most rows that are split, the most that are not, and the most workgroups of splits.
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
	q, tokens, position := p.Dims(o.q), p.Dim(o.k, 1), o.position.At(p)
	context, queries := position+tokens, o.queries(tokens)
	switch {
	case p.Dim(o.q, 1) != queries || p.Dim(o.v, 1) != tokens:
		return p.Errorf("%d tokens in q, %d in k, %d in v, want as many in each", p.Dim(o.q, 1), tokens,
			p.Dim(o.v, 1))
	case q[2] != o.qHeads || q[3] != o.headDim:
		return p.Errorf("q is %v, want %d heads of %d", q, o.qHeads, o.headDim)
	case position < 0:
		return p.Errorf("position %d, want at least 0", position)
	case context > o.context:
		return p.Errorf("position %d and %d tokens need %d positions, the cache has %d", position, tokens,
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

// cacheBytes is the size of a position in one of the caches.
func (o *sdpa) cacheBytes() int64 {
	n := 4 * int64(o.kvHeads) * int64(o.headDim)
	if o.half {
		n /= 2
	}
	return n
}

// start is the first position that a token at a position sees.
func (o *sdpa) start(position int) int { return max(0, position+1-o.window) }

// spanAt is how many positions the last so many tokens of a context see together.
func (o *sdpa) spanAt(context, tokens int) int { return context - o.start(context-tokens) }

// seen is how many scores the mask lets through, over all heads.
func (o *sdpa) seen(tokens, position int) int64 {
	whole := min(tokens, max(0, position+tokens+1-o.window)) // tokens that see a full window
	n, p := int64(tokens-whole), int64(position)
	return int64(o.qHeads) * (n*p + n*(n+1)/2 + int64(whole)*int64(o.window))
}

// queryBytes is the size of q, and of y.
func (o *sdpa) queryBytes(tokens int) int64 {
	return 4 * int64(tokens) * int64(o.qHeads) * int64(o.headDim)
}

func (o *sdpa) planUpdate(p *graph.Planner, tokens, position int) {
	if o.rope != nil {
		o.rope.turn(p)
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
	l.FLOPs = 2 * seen * int64(o.headDim)

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

func (o *sdpa) planStreaming(p *graph.Planner, tokens, position, splits, length int) {
	context, seen := position+tokens, o.seen(tokens, position)
	span := o.spanAt(context, tokens)
	s := &o.stream
	lanes, tile := s.across*s.down, 8*s.down
	rows := grid.Split("tokens", tokens, tile)
	rows.Times = int64(o.qHeads / o.kvHeads) // heads that share a KV head
	terms := [...]trace.Term{rows, grid.Each("kv heads", o.kvHeads), {}}
	used := terms[:2]
	if length > 0 {
		terms[2] = grid.Split(o.span, span, length)
		used = terms[:]
	}
	l := p.Dispatch(slotStreaming, p.Rows(lanes, lanes, used...))
	missing := rows.Groups()*int64(tile) - rows.Value*rows.Times
	l.Grid.Idle = missing / 8 * int64(s.across*o.kvHeads*splits) // without a row of their 8
	l.Params.U32("tokens", tokens).U32("context", context).U32("position", position).
		U32("window", o.window).U32("kv_heads", o.kvHeads).F32("scale", o.scale)
	l.Bytes = 2*o.queryBytes(tokens) + 2*int64(span)*o.cacheBytes()
	l.FLOPs = seen * (4*int64(o.headDim) + 5)
	if length > 0 {
		l.Params.U32("splits", splits).U32("split_len", length)
		l.Bytes += o.partsBytes(tokens, splits) - o.queryBytes(tokens)
		p.SetDims(o.parts, o.streamParts, o.qHeads, o.headDim+4)
	}
}

// turned are q and k as they meet.
func (o *sdpa) turned(r *reference.Ref) (q, k reference.Tensor) {
	if o.rope == nil {
		return r.Tensor(o.q), r.Tensor(o.k)
	}
	o.rope.Reference(r)
	return r.Tensor(o.rope.parts().yq), r.Tensor(o.rope.parts().yk)
}

func (o *sdpa) Reference(r *reference.Ref) {
	q, k := o.turned(r)
	v := r.Tensor(o.v)
	kCache, vCache := r.Tensor(o.kCache), r.Tensor(o.vCache)
	tokens, position, d := k.Dims[1], o.position.In(r), o.headDim
	row := o.kvHeads * d
	for i := range k.Data {
		kCache.Data[position*row+i], vCache.Data[position*row+i] = o.stored(k.Data[i]), o.stored(v.Data[i])
	}
	if o.spread != nil {
		defer o.giveLeft(r, q, position, tokens)
	}
	y := r.Result(o.y, q.Dims...)
	first := position + tokens - q.Dims[1] // position of the first token of q
	rows := slices.Collect(r.Rows(o.y, q.Dims[1]*o.qHeads))
	reference.InParallel(rows, func(rows []int) {
		weights := make([]float64, position+tokens)
		for _, i := range rows {
			s, h := i/o.qHeads, i%o.qHeads
			at := h / (o.qHeads / o.kvHeads) * d
			start, largest := o.start(first+s), math.Inf(-1)
			seen := weights[:first+s+1-start]
			for c := range seen {
				seen[c] = reference.Dot(q.Row(i), kCache.Data[(start+c)*row+at:][:d]) * float64(o.scale)
				largest = max(largest, seen[c])
			}
			var sum float64
			for c := range seen {
				seen[c] = math.Exp(seen[c] - largest)
				sum += seen[c]
			}
			out := y.Row(i)
			clear(out)
			for c, w := range seen {
				w /= sum
				for j, v := range vCache.Data[(start+c)*row+at:][:d] {
					out[j] += w * v
				}
			}
		}
	})
	r.Set(o.y, y)
}

// Tolerance: what a score is off, its weight is off as a part of itself, and the results are sums of values
// by these weights. No score is larger than the lengths of a query and of a key make it. The caches have the
// keys and values as they are, or rounded to halves.
func (o *sdpa) Tolerance(r *reference.Ref, v graph.ValueID) reference.Tolerance {
	if v == o.kCache || v == o.vCache {
		t := reference.Moves{}.Tolerance(r, v)
		if o.half {
			t = reference.Tolerance{Rel: 0x1p-10, Abs: 0x1p-24, Why: "elements are rounded to halves"}
		}
		if v == o.kCache && o.rope != nil {
			t.Row, t.Why = o.turnedWithin(r), turnedPairs.Why+"; "+t.Why
		}
		return t
	}
	q, k := o.turned(r)
	d := o.headDim
	context, row := o.position.In(r)+k.Dims[1], o.kvHeads*d
	span := o.spanAt(context, q.Dims[1])
	start := context - span
	keys := reference.Tensor{Dims: []int{d}, Data: r.Tensor(o.kCache).Data[start*row : context*row]}
	values := r.Tensor(o.vCache).Data[start*row : context*row]
	score := q.LongestRow() * keys.LongestRow() * math.Abs(float64(o.scale))
	part := reference.SumRoundings(
		d,
	)/2*reference.Rounding*score + reference.ULPs(
		3,
	) + reference.SumRoundings(
		span,
	)*reference.Rounding
	if o.rope != nil {
		part += 2 * o.turnedWithin(r) * score
		if o.half { // an element of a key may be rounded to another half, and moves a weight by half of that
			part += math.Abs(
				float64(o.scale),
			) * reference.Largest(
				q.Data,
			) * reference.Largest(
				keys.Data,
			) * 0x1p-11
		}
	}
	if v == o.splits { // sums that are not yet divided, and what they are to be divided by
		part *= 2 * float64(span) * max(1, 1/reference.Largest(values))
	}
	return reference.Tolerance{
		Abs: part * reference.Largest(values),
		Why: fmt.Sprintf(
			"scores of at most %.3g are sums of %d products in f32, values up to %.3g are summed over "+
				"%d positions",
			score,
			d,
			reference.Largest(values),
			span,
		),
	}
}

// turnedWithin is how near q and k come, of the largest element of a head, where attention turns them itself.
func (o *sdpa) turnedWithin(r *reference.Ref) float64 {
	if o.norms == nil {
		return turnedPairs.Row
	}
	return turnedPairs.Row + o.norms.Tolerance(r, o.norms.y).Rel
}

// stored is an element as a cache keeps it.
func (o *sdpa) stored(x float64) float64 {
	if o.half {
		return float64(float16.Fromfloat32(float32(x)).Float32())
	}
	return x
}
