package ops

import (
	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/engine/graph/grid"
	"gpuscope/ops/internal/shape"
	"gpuscope/trace"
)

// This file plans the attention kernel for steps with several tokens. The kernel iterates once over the
// positions.

// streamShape describes how a workgroup of the streaming kernel divides its work. The field `down` is the
// number of groups of lanes, and the field `across` is the number of lanes in a group. A group processes 8
// rows, and each of its lanes processes 4 positions and some columns. The field `quads` determines how much
// of q, k and v is in workgroup memory at a time: 4 * quads columns or positions.
type streamShape struct{ across, down, quads int }

// streamShapes lists the shapes in order of speed on an H200, fastest first.
var streamShapes = []streamShape{{16, 8, 4}, {16, 4, 2}, {8, 4, 2}}

// streams(limits) returns the first of streamShapes that fits in the device's workgroup memory. If the head
// dim is too large, or no shape fits, it returns the zero shape.
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

// The fastest limits for the route split_streaming on an H200, measured with BenchmarkPrefillAttention. With
// fewer splits than fewestSplits, the dispatch that combines them takes more time than splitting saves.
const (
	streamGroups = 256 // largest number of workgroups
	fewestSplits = 4   // smallest number of splits
)

// streamTiles returns the total number of tiles of all heads for `tokens` tokens.
func (o *sdpa) streamTiles(tokens int) int {
	return shape.DivUp(tokens*o.qHeads/o.kvHeads, 8*o.stream.down) * o.kvHeads
}

// mostStreamSplits returns the largest number of splits into which `span` positions can be divided. Each
// split must have at least two tiles of positions, and all splits together can use at most streamGroups
// workgroups. The result is 1 (no splitting) if this number would be less than fewestSplits.
func (o *sdpa) mostStreamSplits(tokens, span int) int {
	if n := min(streamGroups/o.streamTiles(tokens), span/(8*o.stream.across)); n >= fewestSplits {
		return n
	}
	return 1
}

// streamSplits returns the number of splits into which `span` positions are divided, and the length of a
// split in positions. The length is a multiple of the tile size. The last split can have fewer positions.
func (o *sdpa) streamSplits(tokens, span int) (n, length int) {
	tile := 4 * o.stream.across
	length = tile * shape.DivUp(shape.DivUp(span, tile), o.mostStreamSplits(tokens, span))
	return shape.DivUp(span, length), length
}

func (o *sdpa) planStreaming(p *graph.Planner, tokens, position, splits, length int) {
	context, seen := position+tokens, o.seen(tokens, position)
	span := o.spanAt(context, tokens)
	s := &o.stream
	lanes, tile := s.across*s.down, 8*s.down
	rows := grid.Split("tokens", tokens, tile)
	rows.Times = int64(o.qHeads / o.kvHeads) // number of query heads that share a KV head
	terms := [...]trace.Term{rows, grid.Each("kv heads", o.kvHeads), {}}
	used := terms[:2]
	if length > 0 {
		terms[2] = grid.Split(o.span, span, length)
		used = terms[:]
	}
	l := p.Dispatch(slotStreaming, p.Rows(lanes, lanes, used...))
	missing := rows.Groups()*int64(tile) - rows.Value*rows.Times
	l.Grid.Idle = missing / 8 * int64(s.across*o.kvHeads*splits) // lanes without any of their 8 rows
	l.Params.U32("tokens", tokens).U32("context", context).U32("position", position).
		U32("window", o.window).U32("kv_heads", o.kvHeads).F32("scale", o.scale)
	l.Bytes = 2*o.queryBytes(tokens) + 2*int64(span)*o.cacheBytes()
	l.FLOPs = seen * (4*int64(o.headDim) + 5 + o.capFLOPs())
	if length > 0 {
		l.Params.U32("splits", splits).U32("split_len", length)
		l.Bytes += o.partsBytes(tokens, splits) - o.queryBytes(tokens)
		p.SetDims(o.parts, o.streamParts, o.qHeads, o.headDim+4)
	}
}
