package ops

import "gpuscope/engine"

// fuseNorm leaves a norm of one row to the products that read it: each has all of the row in any case, and
// multiplies by the weights of the norm what it loads. The squares are summed beside the products, and the
// scale that they give multiplies the sums at the end, so nothing waits for it. That is work for each of
// their workgroups, so they must not be too many (linearTuning). With more rows all stay as they are.
//
// It takes the norm and each of the products by itself, in the order of the graph.
var fuseNorm = engine.Fusion{
	Name: "norm", Doc: "a norm of one row is taken in by the linears that read it",
	Pattern: engine.Pattern{Kinds: append(linearKinds(), kindRMSNorm.Name)},
	Replace: func(b *engine.Builder, m *engine.Match) engine.Operator {
		switch o := m.Last().(type) {
		case *rmsNorm:
			rows := rowsBehind(b, o)
			if rows == 0 || o.other != nil || rows*last(b.MaxDims(o.x)) > tuned.norm {
				return nil
			}
			fused := *o
			fused.behind = rows
			return &fused
		case *linear:
			norm, ok := b.Producer(o.x).(*rmsNorm)
			if !ok || norm.behind == 0 {
				return nil
			}
			fused := *o
			fused.norm = norm
			fused.plan(b.Limits())
			fused.makeKernels(b)
			return &fused
		}
		return nil
	},
}

// rowsBehind is how many rows of weights read a norm; 0 where something else does, or a product that cannot
// do the norm wherever that has one row.
func rowsBehind(b *engine.Builder, o *rmsNorm) (rows int) {
	readers, all := b.Readers(o.y)
	if !all {
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
