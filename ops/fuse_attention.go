package ops

import (
	"fmt"
	"math"
	"slices"

	"gpuscope/engine"
	"gpuscope/shaders"
)

// fuseAttention leaves attention of one token in splits of its positions, which the products that read it
// put together as they load their columns, so that no dispatch does. That costs in proportion to the
// workgroups of the product and to the splits, so these are few: near the first position there is one, which
// is y, and far from it a dispatch puts together as many as fill the device (leftSpans).
//
// It takes the attention and each of the products by itself, in the order of the graph.
var fuseAttention = engine.Fusion{
	Name: "attention", Doc: "the splits of attention of one token are put together by the linears behind it",
	Pattern: engine.Pattern{Kinds: slices.Concat(linearKinds, []string{kindSDPA.Name})},
	Replace: func(b *engine.Builder, m *engine.Match) engine.Operator {
		switch o := m.Last().(type) {
		case *sdpa:
			fused := *o
			if !o.routes.has(sdpaFlashDecoding) || b.RouteAsked(o.y) || !fused.leavesTo(b, o.y) {
				return nil
			}
			fused.splits = b.Tensor(b.Name(o.y)+".splits", engine.F32)
			fused.routes = slices.Clone(o.routes)
			fused.routes[sdpaSplitDecoding].upTo = 1
			fused.makeDecodeKernels(b)
			return &fused
		case *linear:
			attention, ok := viewed(b, o.x).(*sdpa)
			if !ok || attention.splits == engine.None {
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

// viewed is the operator that gives what x is a view of.
func viewed(b *engine.Builder, x engine.ValueID) engine.Operator {
	o := b.Producer(x)
	for {
		v, ok := o.(*view)
		if !ok {
			return o
		}
		o = b.Producer(v.x)
	}
}

// leavesTo says whether all that read y, or a view of it, are products that can put splits together wherever
// there is one token, and keeps the residuals of those: with one of several rows they make several.
func (o *sdpa) leavesTo(b *engine.Builder, y engine.ValueID) bool {
	readers, all := b.Readers(y)
	if !all || len(readers) == 0 {
		return false
	}
	for _, r := range readers {
		switch r := r.(type) {
		case *view:
			if !o.leavesTo(b, r.y) {
				return false
			}
		case *linear:
			if r.w.Cols != o.qHeads*o.headDim || r.shapes[0].batch != 1 || b.RouteAsked(r.y) {
				return false
			}
			if r.residual == engine.None {
				continue
			}
			if r.x != y || r.residual >= o.y && b.Producer(r.residual) != nil { // it may be given behind
				return false
			}
			o.residuals = append(slices.Clip(o.residuals), r.residual)
		default:
			return false
		}
	}
	return true
}

// leaves says whether one token that sees so many positions is left in splits.
func (o *sdpa) leaves(span int) bool {
	above, upTo := o.leftSpan()
	return span > above && span <= upTo
}

// splittable says whether one token that sees so many positions can be left in splits: each has some.
func (o *sdpa) splittable(span int) bool { return span >= leftSplits*leftSplits }

// rows is how many rows those make that read what is given of one token.
func (o *sdpa) rows(p *engine.Planner) int {
	most := 1
	for _, v := range o.residuals {
		most = max(most, p.Numel(v)/last(p.Dims(v)))
	}
	return most
}

// give settles whether y is given, or left in splits.
func (o *sdpa) give(p *engine.Planner, route int, dims []int) {
	y, splits := p.SetDims, p.Leave
	if route == sdpaSplitDecoding {
		y, splits = splits, y
	}
	y(o.y, dims...)
	if o.splits != engine.None {
		splits(o.splits, leftSplits, o.qHeads, o.headDim+4)
	}
}

func (o *sdpa) inSplits() bool { return true }

func (o *sdpa) left() []engine.Binding { return []engine.Binding{bind("x", o.splits)} }

func (o *sdpa) specialise(c shaders.Constants, chunk int) {
	c["HeadQuads"], c["Run"] = o.headDim/4, gcd(o.headDim, chunk)/4
}

func gcd(a, b int) int {
	for b > 0 {
		a, b = b, a%b
	}
	return a
}

func (o *sdpa) planLeft(_ *engine.Planner, l *engine.Launch) {
	l.Bytes += o.partsBytes(1, leftSplits) - o.queryBytes(1)
	l.FLOPs += 2 * int64(leftSplits) * int64(o.qHeads*o.headDim)
}

// giveSplits gives the splits of a token in float64.
func (o *sdpa) giveSplits(r *Ref, q Tensor, position int) {
	d, row, start := o.headDim, o.kvHeads*o.headDim, o.start(position)
	span := position + 1 - start
	length := divUp(span, leftSplits)
	splits := zeros(leftSplits, o.qHeads, d+4)
	keys, values := r.Tensor(o.kCache).Data, r.Tensor(o.vCache).Data
	for i := range leftSplits * o.qHeads {
		first, h := i/o.qHeads*length, i%o.qHeads
		part, at := splits.row(i), h/(o.qHeads/o.kvHeads)*d
		scores := make([]float64, min(length, span-first))
		for c := range scores {
			scores[c] = dot(q.row(h), keys[(start+first+c)*row+at:][:d]) * float64(o.scale)
		}
		part[d] = slices.Max(scores)
		for c, score := range scores {
			weight := math.Exp(score - part[d])
			part[d+1] += weight
			for j, v := range values[(start+first+c)*row+at:][:d] {
				part[j] += weight * v
			}
		}
	}
	r.Set(o.splits, splits)
}

func (o *sdpa) leftRow(r *Ref, x Tensor) Tensor {
	position := o.position.in(r)
	if !o.splittable(position + 1 - o.start(position)) {
		return x
	}
	splits := r.Tensor(o.splits)
	y := zeros(x.Dims...)
	for h := range o.qHeads {
		largest, total := math.Inf(-1), 0.0
		for s := range splits.Dims[0] {
			largest = max(largest, splits.row(s*o.qHeads + h)[o.headDim])
		}
		out := y.Data[h*o.headDim:][:o.headDim]
		for s := range splits.Dims[0] {
			part := splits.row(s*o.qHeads + h)
			weight := math.Exp(part[o.headDim] - largest)
			total += weight * part[o.headDim+1]
			for j := range out {
				out[j] += weight * part[j]
			}
		}
		for j := range out {
			out[j] /= total
		}
	}
	return y
}

func (o *sdpa) leftTolerance(int) (row float64, why string) {
	why = fmt.Sprintf(", of inputs that are sums of %d splits", leftSplits)
	return summed(leftSplits)*rounding + ulps(3), why
}
