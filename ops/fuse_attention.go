package ops

import (
	"fmt"
	"math"
	"slices"

	"gpuscope/engine/graph"
	"gpuscope/ops/basic"
	"gpuscope/ops/internal/shape"
	"gpuscope/ops/reference"
	"gpuscope/shaders"
)

// fuseAttention makes attention of one token write its output in interleaved order, which is the order in
// which the next linears load it. At some context lengths attention divides the positions into splits, and
// writes a partial result for each split. The linears then combine these results as they load their columns,
// which saves a dispatch.
//
// The cost of combining grows with the number of splits and with the workgroups of the linear, so only
// leftSplits splits are used. leftSpans lists the context lengths at which linears combine the splits. At
// shorter contexts attention does not split the positions. At longer contexts attention uses enough splits to
// fill the device, and a separate dispatch combines them.
//
// The rule replaces the attention and each of the linears separately, in the order of the graph.
var fuseAttention = graph.Fusion{
	Name: "attention", Doc: "attention of one token stores its output in the order in which the next linears load it; if " +
		"attention ran in splits, these linears combine the splits",
	Pattern: graph.Pattern{Kinds: slices.Concat(linearKinds, []string{kindSDPA.Name})},
	Replace: func(b *graph.Builder, m *graph.Match) graph.Operator {
		switch o := m.Last().(type) {
		case *sdpa:
			if !o.Routes.Has(sdpaFlashDecoding) {
				return nil
			}
			fused, of := *o, o.k
			if o.reads() {
				of = o.q
			}
			if fused.spread = spreadAfter(b, o.y, o.qHeads*o.headDim, of); fused.spread == nil {
				return nil
			}
			fused.splits = b.Tensor(b.Name(o.y)+".splits", graph.F32)
			b.Permuted(fused.splits, fused.splitsFrom)
			fused.Routes = slices.Clone(o.Routes)
			fused.Routes[sdpaSplitDecoding].UpTo = 1
			fused.makeDecodeKernels(b)
			return &fused
		case *linear:
			attention, ok := viewed(b, o.x).(*sdpa)
			if !ok || attention.spread == nil {
				return nil
			}
			fused := *o
			fused.before = attention
			fused.plan(b.Limits())
			fused.makeKernels(b)
			return &fused
		}
		return nil
	},
}

// viewed returns the operator that computes x. If x is a view of another tensor, it returns the operator that
// computes this tensor.
func viewed(b *graph.Builder, x graph.ValueID) graph.Operator {
	o := b.Producer(x)
	for {
		v, ok := o.(*basic.ViewOp)
		if !ok {
			return o
		}
		o = b.Producer(v.X)
	}
}

// leaves(span) reports whether attention leaves it to the linears to combine the splits, when one token
// attends to `span` positions.
func (o *sdpa) leaves(span int) bool {
	above, upTo := o.leftSpan()
	return span > above && span <= upTo
}

// splittable(span) reports whether `span` positions can be divided into leftSplits splits that are not
// empty.
func (o *sdpa) splittable(span int) bool { return span >= leftSplits*leftSplits }

// leftSize returns the total number of floats in the partial results of one token.
func (o *sdpa) leftSize() int { return leftSplits * o.qHeads * (o.headDim + 2) }

// give(p, route, dims) sets the dims of the only output that the route computes: y, the interleaved row, or
// the partial results (splits). give defers the other outputs.
func (o *sdpa) give(p *graph.Planner, route int, dims []int) {
	if route == sdpaSplitDecoding {
		p.Defer(o.y, dims...)
		p.Defer(o.spread.value, 1, o.spread.width)
		p.SetDims(o.splits, o.leftSize())
		return
	}
	o.spread.give(p, o.y, o.spread != nil && (route == sdpaFlashDecoding || route == sdpaDecoding), dims...)
	if o.spread != nil {
		p.Defer(o.splits, o.leftSize())
	}
}

func (o *sdpa) left(route int) graph.ValueID {
	if route == linearSplits {
		return o.splits
	}
	return o.spread.left(route)
}

// leavesAll() reports whether attention defers y in every step in which y has a single row. It is false if y
// has a row only for the last token of a step (see Last). In a step of several tokens, y then has a single
// row too, and the routes for several tokens compute it.
func (o *sdpa) leavesAll() bool { return !o.Last }

func (o *sdpa) besides() []graph.Binding { return nil }

func (o *sdpa) specialize(route int, c shaders.Constants, chunk int) {
	if c["Spread"] = true; route == linearSplits {
		c["HeadQuads"], c["Run"] = o.headDim/4, gcd(o.headDim, chunk)/4
	}
}

func gcd(a, b int) int {
	for b > 0 {
		a, b = b, a%b
	}
	return a
}

func (o *sdpa) planLeft(route int, _ *graph.Planner, l *graph.Launch) {
	if route == linearSplits {
		l.Bytes += o.partsBytes(1, leftSplits) - o.queryBytes(1)
		l.FLOPs += 2 * int64(leftSplits) * int64(o.qHeads*o.headDim)
	}
}

// giveLeft computes the reference values of the two outputs that replace y for one token: the interleaved row
// and the splits. For several tokens giveLeft clears both values.
func (o *sdpa) giveLeft(r *reference.Ref, q reference.Tensor, position, tokens int) {
	r.Set(o.spread.value, reference.Tensor{})
	r.Set(o.splits, reference.Tensor{})
	if tokens > 1 {
		return
	}
	r.Set(o.spread.value, spreadOf(r.Tensor(o.y).Data))
	d, row, start := o.headDim, o.kvHeads*o.headDim, o.start(position)
	span := o.spanAt(position+1, 1)
	if r.Deferred(o.splits) || !o.splittable(span) {
		return
	}
	length := shape.DivUp(span, leftSplits)
	splits := reference.Zeros(o.leftSize())
	keys, values := r.Tensor(o.kCache).Data, r.Tensor(o.vCache).Data
	for s := range leftSplits {
		sums := make([]float64, o.qHeads*d)
		for h := range o.qHeads {
			first, at := s*length, h/(o.qHeads/o.kvHeads)*d
			scores := make([]float64, min(length, span-first))
			for c := range scores {
				scores[c] = o.score(q.Row(h), keys[(start+first+c)*row+at:][:d])
			}
			largest, total := o.tail(splits, s, h)
			*largest = slices.Max(scores)
			if s == leftSplits-1 {
				sink := o.sink(r, h)
				*largest = max(*largest, sink)
				*total = math.Exp(sink - *largest)
			}
			for c, score := range scores {
				weight := math.Exp(score - *largest)
				*total += weight
				for j, v := range values[(start+first+c)*row+at:][:d] {
					sums[h*d+j] += weight * v
				}
			}
		}
		copy(splits.Data[s*len(sums):], spreadOf(sums).Data)
	}
	r.Set(o.splits, splits)
}

// splitsFrom maps an index in the output `splits` to an index in plain order. The output starts with the
// weighted sums of all splits, which are interleaved. After them come the largest score and the sum of
// weights of each split, in plain order.
func (o *sdpa) splitsFrom(at int) int {
	width := o.qHeads * o.headDim
	if at >= leftSplits*width {
		return at
	}
	return at - at%width + spreadFrom(at%width, width)
}

// tail returns pointers into `splits`: to the largest score, and to the sum of weights, of one head in one
// split.
func (o *sdpa) tail(splits reference.Tensor, split, head int) (largest, total *float64) {
	tail := splits.Data[leftSplits*(o.qHeads*o.headDim+2*head):]
	return &tail[split], &tail[leftSplits+split]
}

func (o *sdpa) leftRow(r *reference.Ref, x reference.Tensor) reference.Tensor {
	if !r.Has(o.splits) {
		return o.spread.leftRow(r, x)
	}
	splits, width := r.Tensor(o.splits), o.spread.width
	shares := make([][leftSplits]float64, o.qHeads)
	for h := range shares {
		top, sum := math.Inf(-1), 0.0
		for s := range leftSplits {
			largest, _ := o.tail(splits, s, h)
			top = max(top, *largest)
		}
		for s := range leftSplits {
			largest, total := o.tail(splits, s, h)
			shares[h][s] = math.Exp(*largest - top)
			sum += shares[h][s] * *total
		}
		for s := range leftSplits {
			shares[h][s] /= sum
		}
	}
	y := reference.Zeros(x.Dims...)
	for i, v := range splits.Data[:leftSplits*width] {
		column := o.splitsFrom(i) % width
		y.Data[column] += shares[column/o.headDim][i/width] * v
	}
	return y
}

func (o *sdpa) leftTolerance(int) (row float64, why string) {
	why = fmt.Sprintf("; each input is a sum of %d splits", leftSplits)
	return reference.SumRoundings(leftSplits)*reference.Rounding + reference.ULPs(3), why
}
