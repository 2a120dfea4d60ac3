package ops

import (
	"slices"

	"gpuscope/engine/graph"
	"gpuscope/ops/basic"
	"gpuscope/ops/internal/shape"
)

// fuseResidual takes the sum with the residual stream into the projection before it: x * w' + bias + r is one
// dispatch, and one level, in place of two. The sums are taken in the same order, so that no bit changes.
var fuseResidual = graph.Fusion{
	Name: "residual", Doc: "a sum with the output of a linear is taken in by its kernels",
	Pattern: graph.Pattern{Kinds: []string{"add"}, Of: []graph.Pattern{{Kinds: linearKinds}}},
	Replace: func(b *graph.Builder, m *graph.Match) graph.Operator {
		product, sum := m.Ops[0].(*linear), m.Last().(*basic.BinaryOp)
		residual := otherOperand(sum, product.y)
		if product.residual != graph.None || residual == product.y || sum.Alpha != 1 ||
			!rowsAlike(b, product.y, residual) {
			return nil
		}
		fused := *product
		fused.residual, fused.y = residual, sum.Y
		fused.makeKernels(b)
		return &fused
	},
}

// otherOperand is the operand of a sum that is not v.
func otherOperand(o *basic.BinaryOp, v graph.ValueID) graph.ValueID {
	if o.A == v {
		return o.B
	}
	return o.A
}

// rowsAlike says whether two tensors are of the same dims at every live point, or one of them has a single
// row where the other has several: they have the same range, and where it leaves a choice there is one dim of
// rows. With more than one, a row of batches could stand for all batches, which is not a single row.
func rowsAlike(b *graph.Builder, x, y graph.ValueID) bool {
	lowest, highest := b.MinDims(x), b.MaxDims(x)
	if !slices.Equal(lowest, b.MinDims(y)) || !slices.Equal(highest, b.MaxDims(y)) {
		return false
	}
	if slices.Equal(lowest, highest) {
		return true
	}
	columns, rows := len(highest)-1, 0
	for _, d := range highest[:columns] {
		if d > 1 {
			rows++
		}
	}
	return rows == 1 && lowest[columns] == highest[columns]
}

// sumDims are the dims of the sum of some rows and a residual's: as many rows as either has, where the other
// has as many or a single one, which serves all.
func sumDims(x, residual []int) (dims []int, ok bool) {
	rows, also := rowsIn(x), rowsIn(residual)
	if dims = x; also > rows {
		dims = residual
	}
	return dims, rows == also || min(rows, also) == 1
}

// rowsIn is how many rows of its last dim a tensor of some dims has.
func rowsIn(dims []int) int { return shape.Product(dims) / shape.Last(dims) }
