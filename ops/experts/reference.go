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
	y := r.Result(o.y, 1, x.Dims[1], o.k, o.cols())
	o.product(r, x, slices.Collect(r.Rows(o.y, x.Dims[1]*o.k)), slices.Collect(r.Cols(o.y, o.cols())),
		func(pair, col int, sum float64) { y.Row(pair)[col] = sum })
	r.Set(o.y, y)
}

// product computes the given columns of the products of the given pairs. It calls put for each of them, from
// several goroutines.
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
		Row: reference.SumRoundings(o.w.Cols) * reference.Rounding,
		Why: fmt.Sprintf("%d products summed in f32", o.w.Cols),
	}
	if o.w.Format.AsHalves {
		t.Row += 8 * 2 * reference.Rounding
		t.Why += "; until kernels subtract an offset, weights are up to twice their true size"
	}
	if o.cols() < shortRow {
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
