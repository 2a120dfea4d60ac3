package ops

import (
	"slices"

	"gpuscope/engine/graph"
	"gpuscope/ops/basic"
	"gpuscope/ops/internal/shape"
)

// fuseNormSum is for models whose layers also have a norm after their linears. If there is one row, the rule
// removes two dispatches: for the sum x + norm(y), and for the next norm, which reads this sum. The operator
// that computes y also computes the element-wise part of norm(y), as in fuseNorm. The linears after the next
// norm load this part, multiply it by the scale of norm(y), and add x. These linears need the whole row
// anyway, so they also compute the element-wise part of the next norm. The first of these linears stores the
// sum in memory for all later readers.
//
// Each workgroup of these linears then does additional work, so the rule applies only if the linears have few
// enough weights (linearTuning). With more than one row all operators work as without the rule. The rule
// replaces each operator separately, in the order of the graph.
var fuseNormSum = graph.Fusion{
	Name: "norm_sum", Doc: "for one row, the sum x + norm(y) and the norm of this sum have no dispatches: linears compute both as they load the row",
	Pattern: graph.Pattern{Kinds: slices.Concat(linearKinds, []string{kindRMSNorm.Name})},
	Replace: func(b *graph.Builder, m *graph.Match) graph.Operator {
		switch o := m.Last().(type) {
		case *rmsNorm:
			switch before := b.Producer(o.x).(type) {
			case *linear: // o is the sum x + norm(y)
				if next := before.next; next != nil && next.y == o.y && next.residual != graph.None {
					return next
				}
			case *rmsNorm: // o is the next norm, which reads the sum
				if before.residual != graph.None && before.folds > 0 {
					fused := *o
					fused.folds, fused.sum, fused.spreadWeight = 1, before, spreadConstant(b, o.weight)
					return &fused
				}
			}
		case *linear:
			fused := *o
			if norm, ok := b.Producer(o.x).(*rmsNorm); ok && norm.sum != nil {
				fused.before = norm
				if readers, _ := b.Readers(norm.y); readers[0] == m.Last() {
					fused.makes = norm.sum
				}
				fused.plan(b.Limits())
			}
			fused.next = fused.nextNorm(b, leavesSum)
			switch {
			case fused.before == o.before && fused.next == nil:
				return nil
			case fused.next != nil && fused.next.Last:
				// y has only one row, so the linear needs a kernel for one row, even if x has several rows.
				fused.Last = true
				fused.plan(b.Limits())
			}
			fused.makeKernels(b)
			return &fused
		}
		return nil
	},
}

// sumLanes is the number of lanes of a workgroup that add up the squares of norm(y).
const sumLanes = 32

// leavesSum(b, o) reports whether o, which is a norm with a residual, can be computed by the linears after
// the next norm.
func leavesSum(b *graph.Builder, o *rmsNorm) bool {
	readers, all := b.Readers(o.y)
	if !all || o.residual == graph.None || b.RouteAsked(o.y) {
		return false
	}
	var norm *rmsNorm
	for _, r := range readers {
		switch r := r.(type) {
		case *rmsNorm:
			switch {
			case r.x != o.y: // r is a later norm, which reads the sum only as its residual
			case norm != nil:
				return false
			default:
				norm = r
			}
		case *basic.ViewOp: // unknown readers of the view could run before the sum is stored
			return false
		}
	}
	if norm == nil || norm.eps != o.eps || !isConstant(b, norm.weight) {
		return false
	}
	if rows := rowsAfter(b, norm); rows == 0 || rows*shape.Last(b.MaxDims(o.y)) > tuned.sum {
		return false
	}
	products, _ := b.Readers(norm.y)
	if slices.ContainsFunc(products, func(r graph.Operator) bool { _, ok := r.(*linear); return !ok }) {
		return false
	}
	first := products[0].(*linear)
	return b.ReadersAfter(o.y, first.y) == len(readers)-1 && !slices.ContainsFunc(products,
		func(r graph.Operator) bool { return !r.(*linear).takesSum(b, norm, o) })
}

// takesSum(b, norm, sum) reports whether the linear's kernel for one row can also compute `sum` and `norm`.
// It cannot if the kernel would then need more storage buffers than the device allows.
func (o *linear) takesSum(b *graph.Builder, norm, sum *rmsNorm) bool {
	of, with := *norm, *o
	of.sum = sum
	with.before, with.makes = &of, sum
	return len(o.parts) == 1 &&
		len(with.bindings(linearGEMV, &o.parts[0])) <= int(b.Limits().MaxStorageBuffers)
}
