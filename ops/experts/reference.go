package experts

import (
	"fmt"
	"math"
	"slices"

	"gpuscope/engine/graph"
	"gpuscope/ops/reference"
)

func (o *linear) Reference(r *reference.Ref) {
	x := r.Tensor(o.x)
	tokens, cols := x.Dims[1], slices.Collect(r.Cols(o.y, o.cols()))
	if o.combine != nil {
		o.combined(r, x, cols)
		return
	}
	y := r.Result(o.y, 1, tokens, o.k, o.cols())
	pairs := slices.Collect(r.Rows(o.y, tokens*o.k))
	if o.gated == nil {
		o.product(r, x, pairs, cols, func(pair, col int, sum float64) { y.Row(pair)[col] = sum })
		r.Set(o.y, y)
		return
	}
	var both []int // rows of gate and of up, alternately
	for _, col := range cols {
		both = append(both, col, o.cols()+col)
	}
	sums := reference.Zeros(tokens*o.k, o.rows())
	o.product(r, x, pairs, both, func(pair, row int, sum float64) { sums.Row(pair)[row] = sum })
	for _, p := range pairs {
		for _, col := range cols {
			y.Row(p)[col] = o.gated.F(sums.Row(p)[col], sums.Row(p)[o.cols()+col])
		}
	}
	r.Set(o.y, y)
}

// combined computes the given columns of y, if y is the sum over the experts of a token.
func (o *linear) combined(r *reference.Ref, x reference.Tensor, cols []int) {
	tokens, weights := x.Dims[1], r.Tensor(o.combine.weights)
	y := r.Result(o.y, 1, tokens, o.cols())
	var pairs []int
	rows := slices.Collect(r.Rows(o.y, tokens))
	for _, t := range rows {
		for j := range o.k {
			pairs = append(pairs, t*o.k+j)
		}
	}
	sums := reference.Zeros(tokens*o.k, o.cols())
	o.product(r, x, pairs, cols, func(pair, col int, sum float64) { sums.Row(pair)[col] = sum })
	for _, t := range rows {
		for _, col := range cols {
			sum := 0.0
			for j, w := range weights.Row(t) {
				sum += w * sums.Row(t*o.k + j)[col]
			}
			if o.combine.residual != graph.None {
				sum = r.Tensor(o.combine.residual).Row(t)[col] + float64(o.combine.alpha)*sum
			}
			y.Row(t)[col] = sum
		}
	}
	r.Set(o.y, y)
}

// product multiplies the row of x of each given pair by the matrix of the pair's expert. It computes only the
// columns `cols` of the results. It calls `put` with each element, from several goroutines.
func (o *linear) product(r *reference.Ref, x reference.Tensor, pairs, cols []int,
	put func(pair, col int, sum float64),
) {
	experts := r.Tensor(o.experts).Data
	of := map[int][]int{} // the pairs of each expert
	for _, p := range pairs {
		of[int(experts[p])] = append(of[int(experts[p])], p)
	}
	var bias []float64
	if o.bias != graph.None {
		bias = r.Tensor(o.bias).Data
	}
	for i := range o.parts {
		part := &o.parts[i]
		first, n := o.expertsIn(part)
		read := o.w.Reader(r, part)
		reference.InParallel(cols, func(cols []int) {
			w := make([]float64, o.w.Cols)
			for _, col := range cols {
				for e := first; e < first+n; e++ {
					if len(of[e]) == 0 {
						continue
					}
					read((e-first)*o.rows()+col, w)
					for _, p := range of[e] {
						sum := reference.Dot(x.Row(o.xRow(p)), w)
						if bias != nil {
							sum += bias[e*o.rows()+col]
						}
						put(p, col, sum)
					}
				}
			}
		})
	}
}

// xRow returns the row of x that belongs to a pair.
func (o *linear) xRow(pair int) int {
	if o.eachSlot {
		return pair
	}
	return pair / o.k
}

// Tolerance is relative to the largest element of the row, as in a linear.
func (o *linear) Tolerance(r *reference.Ref, _ graph.ValueID) reference.Tolerance {
	t := reference.Tolerance{
		Row: reference.SumRoundings(o.w.Cols)*reference.Rounding + o.normError(),
		Why: fmt.Sprintf("%d products summed in f32", o.w.Cols),
	}
	if o.w.Format.AsHalves {
		t.Row += 8 * 2 * reference.Rounding
		t.Why += "; until kernels subtract an offset, weights are up to twice their true size"
	}
	switch c := o.combine; {
	case o.gated != nil: // the error of gate is multiplied by up, and the error of up by act(gate)
		large := o.usual(r)
		t.Abs = (2*t.Row*large + o.gated.Act.Error.Abs + o.gated.Act.ErrorOfX*large) *
			o.gated.LargestFactor(large)
		t.Rel, t.Row = o.gated.Act.Error.Rel+reference.ULPs(1), 0
		t.Why += "; " + o.gated.Act.Kind + " of one such sum is multiplied by another such sum"
	case c != nil: // the results of the experts and the residual can cancel each other out
		scale := r.Largest(c.weights) * float64(o.k) * max(1, math.Abs(float64(c.alpha)))
		t.Abs = t.Row * o.usual(r) * scale
		t.Rel, t.Row = reference.ULPs(2), 0
		t.Why += fmt.Sprintf("; %d such sums are multiplied by weights and added up", o.k)
		if c.residual != graph.None {
			t.Abs += 2 * reference.Rounding * r.Largest(c.residual)
		}
	case o.cols() < shortRow:
		t.Abs = t.Row * o.usual(r)
	}
	return t
}

// In a row with at least shortRow results, it is practically certain that at least one result does not cancel
// out.
const shortRow = 32

// usual returns an estimate of the largest sum of K products of x and w with random signs: 4 |x| |w| /
// sqrt(K).
func (o *linear) usual(r *reference.Ref) float64 {
	longest, w := 0.0, make([]float64, o.w.Cols)
	for i := range o.parts {
		read := o.w.Reader(r, &o.parts[i])
		for row := range min(o.parts[i].Rows, 256) {
			read(row, w)
			longest = max(longest, reference.Length(w))
		}
	}
	return 4 * r.Tensor(o.x).LongestRow() * longest / math.Sqrt(float64(o.w.Cols))
}
