package ops

import (
	"gpuscope/engine/graph"
	"gpuscope/engine/graph/grid"
	"gpuscope/ops/internal/shape"
	"gpuscope/ops/kind"
	"gpuscope/shaders"
	"gpuscope/trace"
)

// This file plans attention for steps with one token. Attention is then only a small part of the step's work,
// but each layer has to wait for it. A fast kernel has many loads in flight at once, and few points at which
// its lanes wait for each other.

// decodeShape describes how an attention kernel for one token divides its work.
type decodeShape struct {
	lanes int // lanes of a workgroup
	heads int // number of query heads that a workgroup processes
	quads int // largest number of 4-element vectors of a key that a lane processes
	// The next fields are computed from the sizes of an operator.
	row       int // number of lanes that share a key
	block     int // number of positions that a workgroup processes at a time
	NewKernel *graph.Kernel
}

// decodeWidest is the largest head dim of the kernels for one token: each 4 columns of a value need a lane.
const decodeWidest = 512

// The fastest shapes on an H200, measured with BenchmarkDecodeAttention and with steps of whole models.
var (
	// wholeDecode has one workgroup for each query head, which processes all positions.
	wholeDecode = decodeShape{lanes: 256, heads: 1, quads: 8}
	// splitDecode divides the positions into several splits, each processed by its own workgroups.
	splitDecode = decodeShape{lanes: 128, heads: 4, quads: 4}
)

const (
	fewDecoded   = 384 // largest number of positions for wholeDecode
	decodeGroups = 256 // largest number of workgroups for splitDecode, about two for each multiprocessor
)

// leftSplits is the number of splits into which attention divides the positions if the linears combine the
// splits (fusion rule `attention`). With 32 query heads, there is then about one workgroup for each
// multiprocessor.
const leftSplits = 4

// leftSpans lists the conditions under which linears combine the splits: the head dim is at most `headDim`,
// and the number of visible positions is greater than `above` and at most `upTo`. The wider the rows of the
// linears, the more time it takes them to combine splits, so the range is smaller for wider heads.
var leftSpans = [...]struct{ headDim, above, upTo int }{{64, 128, 2048}, {decodeWidest, 256, 768}}

// leftSpan() returns the limits in leftSpans that apply to the operator's head dim.
func (o *sdpa) leftSpan() (above, upTo int) {
	s := &leftSpans[0]
	if o.headDim > s.headDim {
		s = &leftSpans[1]
	}
	return s.above, s.upTo
}

// turning describes the RoPE operator that attention replaces. The kernels for one token apply RoPE as they
// load q and k. Other routes apply RoPE in a separate dispatch of the attention operator.
type turning struct {
	rotation
	pairs string // which elements of a head form a pair that is rotated: neighbourPairs or halfPairs
	half  int    // with halfPairs: number of 4-element vectors in half of the rotated elements
}

// neighbourPairs and halfPairs are the possible values of turning.pairs. The kernels have this value as the
// template constant Turn.
const neighbourPairs, halfPairs = "neighbours", "halves"

func (o *sdpa) makeDecodeKernels(b *graph.Builder) {
	rope := o.rope
	if rope == nil {
		rope = &turning{}
	}
	chunks := 0
	if o.spread != nil {
		chunks = o.spread.width / spreadColumns
	}
	shaped := func(d decodeShape, name string, whole bool, leaves int) decodeShape {
		group, quads := o.qHeads/o.kvHeads, o.headDim/4
		for group%d.heads > 0 {
			d.heads /= 2
		}
		// 16 keys have 16*quads vectors of 4 elements, and each vector needs one lane.
		d.lanes = min(d.lanes, kind.LanesFor(b, 16*quads))
		for d.row = 4; d.row*d.quads < quads; {
			d.row *= 2
		}
		d.block = d.lanes / d.row
		d.NewKernel = kind.NewKernelAs(b, name, "sdpa_fd_split",
			shaders.Constants{
				"HeadQuads": quads, "HalfCache": o.half, "Heads": d.heads, "HeadGroups": group / d.heads,
				"Lanes": d.lanes, "Row": d.row, "Whole": whole, "Turn": rope.pairs, "Half": rope.half,
				"Norms": o.norms != nil, "Leaves": leaves, "SoftCap": o.softCap,
				"Sinks": o.sinks != graph.None, "Cached": o.reads(),
			})
		return d
	}
	o.whole = shaped(wholeDecode, "sdpa_decode", true, chunks)
	o.split = shaped(splitDecode, "sdpa_fd_split", false, 0)
	if o.spread != nil {
		o.share = shaped(wholeDecode, "sdpa_decode_split", false, chunks)
	}
	o.reduceRow = o.makeReduce(b, chunks)
}

// binds reports whether the kernels for one token can bind n storage buffers, and the sinks if there are any.
func (o *sdpa) binds(b *graph.Builder, n int) bool {
	if o.sinks != graph.None {
		n++
	}
	return n <= int(b.Limits().MaxStorageBuffers)
}

// makeReduce returns the kernel that combines splits. If `chunks` is 0, the kernel writes y in plain order.
// Otherwise it writes an interleaved row with this number of chunks, for one token.
func (o *sdpa) makeReduce(b *graph.Builder, chunks int) *graph.Kernel {
	return kind.NewKernel(b, "sdpa_fd_reduce", shaders.Constants{
		"HeadQuads": o.headDim / 4, "Lanes": kind.LanesFor(b, o.headDim), "Leaves": chunks,
	})
}

// choose(...) sets the route of the plan and returns the route. The choice depends on the number of tokens
// and on the number of positions that the tokens see.
func (o *sdpa) choose(p *graph.Planner, tokens, position int) int {
	queries := o.queries(tokens)
	span := o.spanAt(position+tokens, queries)
	r, able := o.Routes.Preferred(tokens), o.Routes.Allowed(tokens)
	if !o.splittable(span) {
		able &^= 1 << sdpaSplitDecoding
	}
	switch {
	case able>>sdpaSplitDecoding&1 != 0 && o.leaves(span):
		r = sdpaSplitDecoding
	case tokens == 1 && o.Routes.Has(sdpaDecoding) && span <= fewDecoded:
		r = sdpaDecoding
	case tokens > 1 && o.Routes.Has(sdpaSplitStreaming) && o.mostStreamSplits(queries, span) > 1:
		r = sdpaSplitStreaming
	}
	return o.Routes.Settle(p, r, able, "S", tokens)
}

// mostSplits() returns the largest number of splits on the route flash_decoding.
func (o *sdpa) mostSplits() int {
	return min(max(1, decodeGroups*o.split.heads/o.qHeads), shape.DivUp(o.spanOf(1), o.split.block))
}

// decodeSplits returns the number of splits into which flash_decoding divides `span` positions, and the
// length of a split in positions. The length is a multiple of the block size. The last split can have fewer
// positions.
func (o *sdpa) decodeSplits(span int) (n, length int) {
	length = o.split.block * shape.DivUp(shape.DivUp(span, o.split.block), o.mostSplits())
	return shape.DivUp(span, length), length
}

// planDecode plans the dispatch of an attention kernel for one token. Each split has `length` positions.
func (o *sdpa) planDecode(p *graph.Planner, slot int, d *decodeShape, position, splits, length int,
	grid ...trace.Term,
) *graph.Launch {
	span := o.spanAt(position+1, 1)
	l := p.Dispatch(slot, p.Rows(d.lanes, min(length, d.block)*d.row, grid...))
	l.Params.U32("context", position+1).U32("start", o.start(position))
	if d != &o.whole {
		l.Params.U32("splits", splits).U32("split_len", length)
	}
	l.Params.U32("kv_heads", o.kvHeads).F32("scale", o.scale)
	l.Bytes = o.queryBytes(1) + 2*int64(span)*o.cacheBytes()
	if !o.reads() { // k and v are loaded and stored
		l.Bytes += 8*int64(o.kvHeads)*int64(o.headDim) + 2*o.cacheBytes()
	}
	l.FLOPs = int64(o.qHeads) * int64(span) * (4*int64(o.headDim) + 5 + o.capFLOPs())
	if o.rope == nil {
		return l
	}
	if o.rope.pairs == halfPairs {
		l.Params.U32("angle", 2*o.rope.half*position)
	}
	l.Bytes += 8 * int64(shape.Last(p.Dims(o.rope.parts().cos)))
	l.FLOPs += 3 * int64(o.qHeads+o.ownHeads()) * int64(o.headDim)
	if o.norms != nil {
		l.Params.F32("eps", o.norms.eps)
		l.Bytes += 4 * int64(len(o.norms.norms())*o.headDim)
		l.FLOPs += 4 * int64(o.qHeads+o.ownHeads()) * int64(o.headDim)
	}
	return l
}

func (o *sdpa) planWhole(p *graph.Planner, position int) {
	span := o.spanAt(position+1, 1)
	l := o.planDecode(p, slotDecode, &o.whole, position, 1, span,
		grid.Split("heads", o.qHeads, o.whole.heads), grid.Each("tokens", 1))
	l.Bytes += o.queryBytes(1)
}

func (o *sdpa) planLeftSplits(p *graph.Planner, position int) {
	span := o.spanAt(position+1, 1)
	length := shape.DivUp(span, leftSplits)
	l := o.planDecode(p, slotDecode, &o.share, position, leftSplits, length,
		grid.Split("heads", o.qHeads, o.share.heads), grid.Split(o.span, span, length))
	l.Bytes += o.partsBytes(1, leftSplits)
}

func (o *sdpa) planSplits(p *graph.Planner, position int) {
	span := o.spanAt(position+1, 1)
	splits, length := o.decodeSplits(span)
	p.SetDims(o.parts, o.mostSplits(), o.qHeads, o.headDim+4)
	l := o.planDecode(p, slotSplit, &o.split, position, splits, length,
		grid.Split("heads", o.qHeads, o.split.heads), grid.Split(o.span, span, length))
	l.Bytes += o.partsBytes(1, splits)
	o.planReduce(p, 1, splits)
}

// partsBytes returns the size in bytes of the partial results of all splits.
func (o *sdpa) partsBytes(tokens, splits int) int64 {
	return int64(splits) * (o.queryBytes(tokens) + 8*int64(tokens*o.qHeads))
}

// planReduce plans the dispatch that combines splits.
func (o *sdpa) planReduce(p *graph.Planner, tokens, splits int) {
	quads, lanes := o.headDim/4, int(o.reduce.WorkgroupSize[0])
	busy := min(lanes/quads, splits) * quads // each 4 columns have lanes/quads lanes, which share the splits
	l := p.Dispatch(slotReduce,
		p.Rows(lanes, busy, grid.Each("heads", o.qHeads), grid.Each("tokens", tokens)))
	l.Params.U32("rows", tokens*o.qHeads).U32("splits", splits)
	l.Bytes = o.partsBytes(tokens, splits) + o.queryBytes(tokens)
	l.FLOPs = 2 * int64(tokens*o.qHeads) * int64(splits) * int64(o.headDim)
}
