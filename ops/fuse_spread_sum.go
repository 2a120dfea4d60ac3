package ops

import (
	"slices"

	"gpuscope/engine/graph"
)

// fuseSpreadSum stores a sum in interleaved order if it has a single row. The rule applies if a linear
// computes the sum, and all readers of the sum are linears that compute the next sum from it (rule
// norm_sum). The interleaved row is a separate value of the graph, which replaces the sum. The rule replaces
// each operator separately, in the order of the graph.
var fuseSpreadSum = graph.Fusion{
	Name: "spread_sum", Doc: "for one row, linears store a sum in the order in which later linears load it",
	Pattern: graph.Pattern{Kinds: slices.Concat(linearKinds, []string{kindRMSNorm.Name})},
	Replace: func(b *graph.Builder, m *graph.Match) graph.Operator {
		switch o := m.Last().(type) {
		case *rmsNorm:
			fused := *o
			if o.residual != graph.None && o.folds > 0 {
				fused.stream = madeSpread(b, o.residual)
			}
			if fused.stream != nil {
				return &fused
			}
		case *linear:
			norm, ok := o.before.(*rmsNorm)
			if !ok || norm.sum == nil {
				return nil
			}
			sum, fused := b.Producer(norm.sum.y).(*rmsNorm), *o
			spread := o.makes != nil && addedToByProducts(b, sum.y)
			if !spread && sum.stream == nil {
				return nil
			}
			before := *norm
			before.sum, fused.before = sum, &before
			if o.makes != nil {
				fused.makes = sum
			}
			if spread {
				fused.made = &spreadRow{spreadTensor(b, b.Name(sum.y)+".spread", sum.width), sum.width}
			}
			fused.makeKernels(b)
			return &fused
		}
		return nil
	},
}

// madeSpread returns the interleaved row that replaces a sum, or nil if no such row replaces the sum.
func madeSpread(b *graph.Builder, sum graph.ValueID) *spreadRow {
	readers, _ := b.Readers(sum)
	for _, r := range readers {
		if norm, ok := r.(*rmsNorm); ok && norm.sum != nil && norm.x == sum {
			products, _ := b.Readers(norm.y)
			return products[0].(*linear).made
		}
	}
	return nil
}

// addedToByProducts(...) reports whether a given sum, when it has one row, is read only by linears that
// compute the next sum from it.
func addedToByProducts(b *graph.Builder, sum graph.ValueID) (added bool) {
	readers, all := b.Readers(sum)
	for _, r := range readers {
		switch r := r.(type) {
		case *rmsNorm: // r is the next norm or the next sum. If r.Last is set, r needs rows in plain order
			if r.folds == 0 || r.Last || rowsOf(b, r.x) != rowsOf(b, sum) {
				return false
			}
		case *linear:
			norm, ok := r.before.(*rmsNorm)
			if !ok || norm.sum == nil || norm.sum.residual != sum {
				return false
			}
			added = true
		default:
			return false
		}
	}
	return added && all
}
