package ops

import (
	"gpuscope/engine/graph"
	"gpuscope/engine/graph/grid"
	"gpuscope/ops/internal/shape"
	"gpuscope/ops/kind"
	"gpuscope/shaders"
	"gpuscope/trace"
)

// Attention of one token. A step has little of it and waits for it in every layer, so what counts is how many
// loads are on their way at once and how few times lanes wait for each other.

// decodeShape is how a kernel of one token is made.
type decodeShape struct {
	lanes int // of a workgroup
	heads int // query heads of a workgroup
	quads int // vectors of 4 of a key that a lane takes at most
	// Of the shape of an operator, row lanes share a key, and a block is the positions of all of them.
	row, block int
	NewKernel  *graph.Kernel
}

// What is best on an H200 (BenchmarkDecodeAttention, and the steps of models): wholeDecode takes all
// positions with one workgroup for each query head, up to fewDecoded of them; splitDecode has at most
// decodeGroups workgroups, two for each of the device's multiprocessors.
var (
	wholeDecode = decodeShape{lanes: 256, heads: 1, quads: 8}
	splitDecode = decodeShape{lanes: 128, heads: 4, quads: 4}
)

const (
	fewDecoded   = 384
	decodeGroups = 256
)

// Where splits may be left to products (fusion rule attention) there are leftSplits of them, which is one
// workgroup on each multiprocessor for 32 query heads, where a token sees more positions than above and at
// most upTo. What a product takes for them goes by the size of its row, so wider heads gain less.
const leftSplits = 4

var leftSpans = [...]struct{ headDim, above, upTo int }{{64, 128, 2048}, {sdpaWidest, 256, 768}}

// leftSpan is where one token is left in splits.
func (o *sdpa) leftSpan() (above, upTo int) {
	s := &leftSpans[0]
	if o.headDim > s.headDim {
		s = &leftSpans[1]
	}
	return s.above, s.upTo
}

// turning is a rotation of q and k that an attention does: kernels of one token turn what they load, before
// the others it is a dispatch.
type turning struct {
	rotation
	pairs string // which elements of a head are turned together
	half  int    // of halves: vectors of 4 that one has
}

// Which elements are pairs, as kernels call it.
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
		d.lanes = min(d.lanes, kind.LanesFor(b, 16*quads)) // the columns of 16 positions
		for d.row = 4; d.row*d.quads < quads; {
			d.row *= 2
		}
		d.block = d.lanes / d.row
		d.NewKernel = kind.NewKernelAs(b, name, "sdpa_fd_split",
			shaders.Constants{
				"HeadQuads": quads, "HalfCache": o.half, "Heads": d.heads, "HeadGroups": group / d.heads,
				"Lanes": d.lanes, "Row": d.row, "Whole": whole, "Turn": rope.pairs, "Half": rope.half,
				"Norms": o.norms != nil, "Leaves": leaves,
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

// makeReduce is the kernel that puts splits together. Of one token it gives a row that is spread, of so many
// chunks; 0: as it is.
func (o *sdpa) makeReduce(b *graph.Builder, chunks int) *graph.Kernel {
	return kind.NewKernel(b, "sdpa_fd_reduce", shaders.Constants{
		"HeadQuads": o.headDim / 4, "Lanes": kind.LanesFor(b, o.headDim), "Leaves": chunks,
	})
}

// choose settles the route, also by the positions that the tokens see.
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

// mostSplits is how many splits there are at most.
func (o *sdpa) mostSplits() int {
	return min(max(1, decodeGroups*o.split.heads/o.qHeads), shape.DivUp(o.spanOf(1), o.split.block))
}

// decodeSplits are how many parts some positions are cut into, each of whole blocks but the last, and how
// many positions those have.
func (o *sdpa) decodeSplits(span int) (n, length int) {
	length = o.split.block * shape.DivUp(shape.DivUp(span, o.split.block), o.mostSplits())
	return shape.DivUp(span, length), length
}

// planDecode plans a kernel that attends over splits of so many of the positions that a token sees.
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
	l.Bytes = o.queryBytes(1) + 8*int64(o.kvHeads)*int64(o.headDim) + 2*int64(span+1)*o.cacheBytes()
	l.FLOPs = int64(o.qHeads) * int64(span) * (4*int64(o.headDim) + 5)
	if o.rope == nil {
		return l
	}
	if o.rope.pairs == halfPairs {
		l.Params.U32("angle", 2*o.rope.half*position)
	}
	l.Bytes += 8 * int64(shape.Last(p.Dims(o.rope.parts().cos)))
	l.FLOPs += 3 * int64(o.qHeads+o.kvHeads) * int64(o.headDim)
	if o.norms != nil {
		l.Params.F32("eps", o.norms.eps)
		l.Bytes += 8 * int64(o.headDim)
		l.FLOPs += 4 * int64(o.qHeads+o.kvHeads) * int64(o.headDim)
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

// partsBytes is the size of what splits leave of some tokens.
func (o *sdpa) partsBytes(tokens, splits int) int64 {
	return int64(splits) * (o.queryBytes(tokens) + 8*int64(tokens*o.qHeads))
}

// planReduce puts the splits of some tokens together.
func (o *sdpa) planReduce(p *graph.Planner, tokens, splits int) {
	quads, lanes := o.headDim/4, int(o.reduce.WorkgroupSize[0])
	busy := min(lanes/quads, splits) * quads // a lane takes every so many splits of four columns
	l := p.Dispatch(slotReduce,
		p.Rows(lanes, busy, grid.Each("heads", o.qHeads), grid.Each("tokens", tokens)))
	l.Params.U32("rows", tokens*o.qHeads).U32("splits", splits)
	l.Bytes = o.partsBytes(tokens, splits) + o.queryBytes(tokens)
	l.FLOPs = 2 * int64(tokens*o.qHeads) * int64(splits) * int64(o.headDim)
}
