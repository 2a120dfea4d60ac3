package ops

import "gpuscope/engine"

// fuseNorm leaves a norm of one row to products. Those that read it multiply their sums by its scale at the
// end, so nothing waits for that. What the scale is made of, and the row by the weights of the norm, comes
// from the product that gives the row, which has each element in hand: y * weight, and a sum of squares from
// each workgroup. Where no product gives the row each of those that read the norm has all of the row in any
// case, multiplies by the weights what it loads, and sums the squares beside its products. That is work for
// each of their workgroups, so they must not be too many (linearTuning). With more rows all stay as they are.
//
// It takes the norm and each of the products by itself, in the order of the graph.
var fuseNorm = engine.Fusion{
	Name: "norm", Doc: "a norm of one row is taken in by the linears before and behind it",
	Pattern: engine.Pattern{Kinds: append(linearKinds(), kindRMSNorm.Name)},
	Replace: func(b *engine.Builder, m *engine.Match) engine.Operator {
		switch o := m.Last().(type) {
		case *rmsNorm:
			if product, ok := b.Producer(o.x).(*linear); ok && product.next != nil && product.next.y == o.y {
				return product.next
			}
			rows := rowsBehind(b, o)
			if rows == 0 || rows*last(b.MaxDims(o.x)) > tuned.norm {
				return nil
			}
			fused := *o
			fused.behind = rows
			return &fused
		case *linear:
			fused := *o
			if norm, ok := b.Producer(o.x).(*rmsNorm); ok && norm.behind > 0 {
				fused.norm = norm
				fused.plan(b.Limits())
			}
			fused.next = normBehind(b, &fused)
			if len(fused.bindings(0, &fused.parts[0])) > int(b.Limits().MaxStorageBuffers) {
				fused.next = nil
			}
			if fused.norm == nil && fused.next == nil {
				return nil
			}
			fused.makeKernels(b)
			return &fused
		}
		return nil
	},
}

// normBehind is a norm of what a product gives that can be left to it and those behind; nil where there is
// none.
func normBehind(b *engine.Builder, o *linear) *rmsNorm {
	if o.shapes[0].batch != 1 || len(o.parts) > 1 || o.gated != nil || b.RouteAsked(o.y) {
		return nil
	}
	readers, _ := b.Readers(o.y)
	for _, r := range readers {
		norm, ok := r.(*rmsNorm)
		if !ok {
			continue
		}
		if rows := rowsBehind(b, norm); rows > 0 {
			next := *norm
			next.behind, next.width, next.each = rows, o.w.Rows, o.shapes[0].rows
			next.weighted = b.Tensor(b.Name(norm.y)+".weighted", engine.F32)
			next.squares = b.Tensor(b.Name(norm.y)+".squares", engine.F32)
			return &next
		}
	}
	return nil
}

// rowsBehind is how many rows of weights read a norm; 0 where something else does, or a product that cannot
// do its part wherever that has one row.
func rowsBehind(b *engine.Builder, o *rmsNorm) (rows int) {
	readers, all := b.Readers(o.y)
	if !all || o.other != nil {
		return 0
	}
	for _, r := range readers {
		product, ok := r.(*linear)
		if !ok || product.residual != engine.None || product.shapes[0].batch != 1 || b.RouteAsked(product.y) {
			return 0
		}
		rows += product.w.Rows
	}
	return rows
}
