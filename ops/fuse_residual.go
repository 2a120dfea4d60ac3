package ops

import (
	"slices"

	"gpuscope/engine"
)

// fuseResidual takes the sum with the residual stream into the projection before it: x * w' + bias + r is one
// dispatch, and one level, in place of two. The sums are taken in the same order, so that no bit changes.
var fuseResidual = engine.Fusion{
	Name: "residual", Doc: "a sum with the output of a linear is taken in by its kernels",
	Pattern: engine.Pattern{Kinds: []string{"add"}, Of: []engine.Pattern{{Kinds: linearKinds()}}},
	Replace: func(b *engine.Builder, m *engine.Match) engine.Operator {
		product, sum := m.Ops[0].(*linear), m.Last().(*binaryOp)
		residual := sum.a
		if residual == product.y {
			residual = sum.b
		}
		if product.residual != engine.None || residual == product.y || sum.alpha != 1 ||
			!rowsAlike(b, product.y, residual) {
			return nil
		}
		fused := *product
		fused.residual, fused.y = residual, sum.y
		fused.makeKernels(b)
		return &fused
	},
}

func linearKinds() (names []string) {
	for _, k := range kindsOfLinear {
		names = append(names, k.Name)
	}
	return names
}

// rowsAlike says whether two tensors are of the same dims at every live point, or one of them has a single
// row where the other has several: they have the same range, and at most their number of rows changes.
func rowsAlike(b *engine.Builder, x, y engine.ValueID) bool {
	lowest, highest := b.MinDims(x), b.MaxDims(x)
	if !slices.Equal(lowest, b.MinDims(y)) || !slices.Equal(highest, b.MaxDims(y)) {
		return false
	}
	changes := slices.IndexFunc(highest, func(d int) bool { return d > 1 })
	for i := range highest {
		if lowest[i] != highest[i] && (i != changes || i == len(highest)-1) {
			return false
		}
	}
	return true
}
