package ops

import (
	"slices"

	"gpuscope/engine/graph"
	"gpuscope/ops/basic"
	"gpuscope/ops/internal/shape"
)

// fuseResidual makes the kernels of a linear also add the residual stream: x * w' + bias + r needs one
// dispatch and one level instead of two. The order of additions stays the same, so results are bit-identical.
var fuseResidual = graph.Fusion{
	Name: "residual", Doc: "the kernels of a linear also add the residual",
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

// otherOperand returns the operand of a binary operator that is not v.
func otherOperand(o *basic.BinaryOp, v graph.ValueID) graph.ValueID {
	if o.A == v {
		return o.B
	}
	return o.A
}

// rowsAlike reports whether the sum of two tensors is simple in every step: both have the same dims, or one
// of them has a single row, which is added to all rows of the other. Both tensors must have the same range
// of dims. If any dim can change, at most one dim before the last may exceed 1. Otherwise broadcasting could
// repeat a group of rows instead of a single row.
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

// sumDims returns the dims of the sum of x and a residual. `ok` is true if both have the same number of rows.
// It is also true if one of them has a single row, which is then added to all rows of the other.
func sumDims(x, residual []int) (dims []int, ok bool) {
	rows, also := rowsIn(x), rowsIn(residual)
	if dims = x; also > rows {
		dims = residual
	}
	return dims, rows == also || min(rows, also) == 1
}

// rowsIn returns the number of rows of a tensor with the given dims. A row consists of the elements along the
// last dim.
func rowsIn(dims []int) int { return shape.Product(dims) / shape.Last(dims) }
