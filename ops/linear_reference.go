package ops

import (
	"fmt"
	"math"
	"slices"

	"gpuscope/engine/graph"
	"gpuscope/ops/reference"
)

func (o *linear) Reference(r *reference.Ref) {
	x := r.Tensor(o.x)
	xRows, k := x.Rows()
	dims := x.Dims
	var bias, residual reference.Tensor
	if o.bias != graph.None {
		bias = r.Tensor(o.bias)
	}
	if o.residual != graph.None {
		residual = r.Tensor(o.residual)
		dims, _ = sumDims(dims, residual.Dims)
	}
	dims = slices.Clone(dims)
	dims[len(dims)-1] = o.cols()
	from := 0 // index of the row of x, and of the residual, from which row 0 of y is computed
	if o.Last {
		from = toLast(dims)
	}
	y := r.Result(o.y, dims...)
	m, _ := y.Rows()
	if o.before != nil && m == 1 && xRows == 1 {
		x = o.before.leftRow(r, x)
		if o.made != nil {
			r.Set(o.made.value, spreadOf(o.makes.rowOfGiven(r)))
		}
	}
	cols := slices.Collect(r.Cols(o.y, o.cols()))
	if o.gated != nil {
		if o.spread != nil && m == 1 {
			cols = spreadCols(r, o.spread.value, o.cols())
			defer func() { r.Set(o.spread.value, spreadOf(y.Data)) }()
		}
		o.joined(r, x, y, cols)
		return
	}
	if o.next != nil && m == 1 {
		cols = o.colsOfNext(r, cols)
		defer o.next.giveReference(r, y)
	}
	for _, p := range o.parts {
		read := o.w.Reader(r, &p)
		reference.InParallel(cols, func(cols []int) {
			w := make([]float64, k)
			for _, col := range cols {
				if col < p.First || col >= p.First+p.Rows {
					continue
				}
				read(col-p.First, w)
				for i := range r.Rows(o.y, m) {
					sum := reference.Dot(x.RowFor(from+i), w)
					if bias.Data != nil {
						sum += bias.Data[col]
					}
					if residual.Data != nil {
						sum += residual.RowFor(from + i)[col]
					}
					y.Row(i)[col] = sum
				}
			}
		})
	}
	r.Set(o.y, y)
}

// colsOfNext returns all columns of y that the reference must compute. These are the requested columns
// (cols), and the columns that are needed for the requested elements of the tensors `weighted` and `squares`.
func (o *linear) colsOfNext(r *reference.Ref, cols []int) []int {
	cols = append(cols, spreadCols(r, o.next.weighted, o.w.Rows)...)
	for i := range r.Cols(o.next.squares, o.next.sums()) {
		for col := i * o.next.each; col < min((i+1)*o.next.each, o.w.Rows); col++ {
			cols = append(cols, col)
		}
	}
	slices.Sort(cols)
	return slices.Compact(cols)
}

// joined(...) computes the given columns of the reference value y = act(gate) * up.
func (o *linear) joined(r *reference.Ref, x, y reference.Tensor, cols []int) {
	m, n := y.Rows()
	read := o.w.Reader(r, &o.parts[0])
	reference.InParallel(cols, func(cols []int) {
		gate, up := make([]float64, o.w.Cols), make([]float64, o.w.Cols)
		for _, col := range cols {
			read(col, gate)
			read(n+col, up)
			for i := range r.Rows(o.y, m) {
				y.Row(i)[col] = o.gated.F(reference.Dot(x.Row(i), gate), reference.Dot(x.Row(i), up))
			}
		}
	})
	r.Set(o.y, y)
}

// Tolerance is relative to the largest element of the row. A sum of products of both signs can cancel out, so
// a small result can have the same error as a large one. If a row has only few results, all of them can be
// small for this reason. The tolerance of such a row therefore also has an absolute term.
func (o *linear) Tolerance(r *reference.Ref, v graph.ValueID) reference.Tolerance {
	if o.made != nil && v == o.made.value {
		return sumTolerance(normTolerance(o.w.Cols), r, v, o.makes.addedTo())
	}
	t := o.productTolerance(r)
	if o.next == nil || v == o.y {
		return t
	}
	return o.next.givenTolerance(r, v, t)
}

// productTolerance returns the tolerance of y.
func (o *linear) productTolerance(r *reference.Ref) reference.Tolerance {
	t := reference.Tolerance{
		Row: reference.SumRoundings(o.w.Cols) * reference.Rounding, Why: fmt.Sprintf("%d products summed in f32", o.w.Cols),
	}
	if o.w.Format.AsHalves {
		t.Row += 8 * 2 * reference.Rounding
		t.Why += "; until kernels subtract an offset, weights are up to twice their true size"
	}
	if o.before != nil {
		row, why := o.before.leftTolerance(o.w.Cols)
		t.Row += row
		t.Why += why
	}
	if o.gated != nil { // the error of gate is multiplied by up, and the error of up by act(gate)
		large := o.usual(r)
		t.Abs = (2*t.Row*large + o.gated.Act.Error.Abs + o.gated.Act.ErrorOfX*large) *
			max(large, o.gated.LargestFactor(large))
		t.Rel, t.Row = o.gated.Act.Error.Rel+reference.ULPs(1), 0
		t.Why += "; " + o.gated.Act.Kind + " of one such sum is multiplied by another such sum"
		return t
	}
	if o.w.Rows < shortRow {
		t.Abs = t.Row * o.usual(r)
	}
	return t
}

// In a row with at least shortRow results, it is practically certain that at least one result does not cancel
// out.
const shortRow = 32

// usual returns an estimate of the largest sum of k products of x and w with random signs: 4 |x| |w| /
// sqrt(k). The typical size of such a sum is a quarter of the estimate, and few sums exceed the estimate.
func (o *linear) usual(r *reference.Ref) float64 {
	weights, w := 0.0, make([]float64, o.w.Cols)
	for _, p := range o.parts {
		read := o.w.Reader(r, &p)
		for row := range p.Rows {
			read(row, w)
			weights = max(weights, reference.Length(w))
		}
	}
	return 4 * r.Tensor(o.x).LongestRow() * weights / math.Sqrt(float64(o.w.Cols))
}
