package ops

import (
	"slices"

	"gpuscope/engine/graph"
	"gpuscope/ops/basic"
	"gpuscope/ops/internal/shape"
)

// fuseNormSum leaves a sum with a norm to products, too, where layers have norms after their products as
// well: one row of x + norm(y), of which there is a norm for the next products. What gives y does of its norm
// what each element takes, as of any that products take in (fuseNorm). Those after add that to x, by its
// scale, as they load it: they have all of it in any case, and so do the half of the next norm that fuseNorm
// has done by what gives its row. The first of them makes the sum in memory for all who read it further on.
//
// That is work for each of their workgroups, so they must not be too many (linearTuning). With more rows all
// stay as they are. It takes each operator by itself, in the order of the graph.
var fuseNormSum = graph.Fusion{
	Name: "norm_sum", Doc: "a sum of one row with a norm, and its norm, are computed by the linears after",
	Pattern: graph.Pattern{Kinds: slices.Concat(linearKinds, []string{kindRMSNorm.Name})},
	Replace: func(b *graph.Builder, m *graph.Match) graph.Operator {
		switch o := m.Last().(type) {
		case *rmsNorm:
			switch before := b.Producer(o.x).(type) {
			case *linear: // o is such a sum
				if next := before.next; next != nil && next.y == o.y && next.residual != graph.None {
					return next
				}
			case *rmsNorm: // o is the norm of one
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
				fused.Last = true // its one row is given by kernels for one row, however x comes
				fused.plan(b.Limits())
			}
			fused.makeKernels(b)
			return &fused
		}
		return nil
	},
}

// sumLanes is how many lanes of a workgroup add up the squares of a norm that is part of a sum.
const sumLanes = 32

// leavesSum says whether a norm with a residual can be left to the products after a norm of the sum.
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
			case r.x != o.y: // it adds the sum
			case norm != nil:
				return false
			default:
				norm = r
			}
		case *basic.ViewOp: // what reads it may stand anywhere
			return false
		}
	}
	if norm == nil || norm.eps != o.eps || !isConstant(b, norm.weight) {
		return false
	}
	if rows := rowsBehind(b, norm); rows == 0 || rows*shape.Last(b.MaxDims(o.y)) > tuned.sum {
		return false
	}
	products, _ := b.Readers(norm.y)
	first := products[0].(*linear)
	return b.ReadersAfter(o.y, first.y) == len(readers)-1 && !slices.ContainsFunc(products,
		func(r graph.Operator) bool { return !r.(*linear).takesSum(b, norm, o) })
}

// takesSum says whether the kernel for one row can take in a norm of a sum.
func (o *linear) takesSum(b *graph.Builder, norm, sum *rmsNorm) bool {
	of, with := *norm, *o
	of.sum = sum
	with.before, with.makes = &of, sum
	return len(o.parts) == 1 &&
		len(with.bindings(linearGEMV, &o.parts[0])) <= int(b.Limits().MaxStorageBuffers)
}
