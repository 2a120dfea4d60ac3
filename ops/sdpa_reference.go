package ops

import (
	"fmt"
	"math"
	"slices"

	"github.com/x448/float16"

	"gpuscope/engine/graph"
	"gpuscope/ops/basic"
	"gpuscope/ops/reference"
)

// turned(r) returns the reference values of q and k. If the attention applies RoPE, they are the values after
// RoPE. If the attention only reads the caches, k is empty.
func (o *sdpa) turned(r *reference.Ref) (q, k reference.Tensor) {
	of := []graph.ValueID{o.q, o.k}
	if o.rope != nil {
		o.rope.Reference(r)
		of = []graph.ValueID{o.rope.parts().yq, o.rope.parts().yk}
	}
	if q = r.Tensor(of[0]); !o.reads() {
		k = r.Tensor(of[1])
	}
	return q, k
}

func (o *sdpa) Reference(r *reference.Ref) {
	q, k := o.turned(r)
	kCache, vCache := r.Tensor(o.kCache), r.Tensor(o.vCache)
	tokens, position, d := r.Tensor(o.ofAll()).Dims[1], o.position.In(r), o.headDim
	row := o.kvHeads * d
	for i := range k.Data {
		kCache.Data[position*row+i] = o.stored(k.Data[i])
		vCache.Data[position*row+i] = o.stored(r.Tensor(o.v).Data[i])
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
				seen[c] = o.score(q.Row(i), kCache.Data[(start+c)*row+at:][:d])
				largest = max(largest, seen[c])
			}
			sink := o.sink(r, h)
			largest = max(largest, sink)
			sum := math.Exp(sink - largest)
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

// score returns the reference value of a score: the scaled product of a query and a key, with the soft cap.
func (o *sdpa) score(q, k []float64) float64 {
	s, limit := reference.Dot(q, k)*float64(o.scale), float64(o.softCap)
	if limit > 0 {
		s = limit * math.Tanh(s/limit)
	}
	return s
}

// sink returns the sink of a query head: a score that belongs to no position. Without sinks it returns minus
// infinity.
func (o *sdpa) sink(r *reference.Ref, head int) float64 {
	if o.sinks == graph.None {
		return math.Inf(-1)
	}
	return r.Tensor(o.sinks).Data[head]
}

// capFLOPs returns the number of operations that the soft cap takes for a score.
func (o *sdpa) capFLOPs() int64 {
	if o.softCap > 0 {
		return 7
	}
	return 0
}

// Tolerance is derived from the error of the scores. A score is at most the product of three numbers: the
// length of a query, the length of a key, and the scale. The weight of a position is exp(score), so the
// absolute error of a score is the relative error of the weight. A result is a sum of values with these
// weights. The caches contain keys and values that are exact or rounded to f16.
func (o *sdpa) Tolerance(r *reference.Ref, v graph.ValueID) reference.Tolerance {
	if v == o.kCache || v == o.vCache {
		t := reference.Moves{}.Tolerance(r, v)
		if o.half {
			t = reference.Tolerance{Rel: 0x1p-10, Abs: 0x1p-24, Why: "elements are rounded to f16"}
		}
		if v == o.kCache && o.rope != nil {
			t.Row, t.Why = o.turnedWithin(r), basic.TurnedPairs.Why+"; "+t.Why
		}
		return t
	}
	q, _ := o.turned(r)
	d := o.headDim
	context, row := o.position.In(r)+r.Tensor(o.ofAll()).Dims[1], o.kvHeads*d
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
	// The slope of a soft cap is at most 1. WGSL allows an error of 1e-5 in tanh.
	part += 2e-5 * float64(o.softCap)
	if o.sinks != graph.None {
		part += reference.Rounding * r.Largest(o.sinks)
	}
	if o.rope != nil {
		part += 2 * o.turnedWithin(r) * score
		// RoPE is not exact, so an element of a key can be rounded to a neighboring f16 number. The
		// additional term lets a score change by half of the distance between the two numbers.
		if o.half {
			part += math.Abs(
				float64(o.scale),
			) * reference.Largest(
				q.Data,
			) * reference.Largest(
				keys.Data,
			) * 0x1p-11
		}
	}
	// The output `splits` has two kinds of numbers: sums of weighted values, which are not yet divided by
	// the sum of their weights, and these sums of weights.
	if v == o.splits {
		part *= 2 * float64(span) * max(1, 1/reference.Largest(values))
	}
	return reference.Tolerance{
		Abs: part * reference.Largest(values),
		Why: fmt.Sprintf(
			"scores of size up to %.3g are f32 sums of %d products; values of size up to %.3g are summed over "+
				"%d positions",
			score,
			d,
			reference.Largest(values),
			span,
		),
	}
}

// turnedWithin returns the error of RoPE in q and k, relative to the largest element of a head. It is for
// attention that applies RoPE itself.
func (o *sdpa) turnedWithin(r *reference.Ref) float64 {
	if o.norms == nil {
		return basic.TurnedPairs.Row
	}
	return basic.TurnedPairs.Row + o.norms.Tolerance(r, o.norms.y).Rel
}

// stored(x) returns the value that a cache has after x is stored in it: x, or x rounded to f16.
func (o *sdpa) stored(x float64) float64 {
	if o.half {
		return float64(float16.Fromfloat32(float32(x)).Float32())
	}
	return x
}
