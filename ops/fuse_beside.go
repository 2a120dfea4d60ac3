package ops

import "gpuscope/engine/graph"

// fuseBeside lets linears that read the same tensor (such as those for q, k and v) choose their kernels
// together. These linears run in parallel, so it is enough if all their workgroups together fill the device.
// All of them use tiles of the same size, because dispatches with two different tile sizes do not overlap on
// an H200.
var fuseBeside = graph.Fusion{
	Name: "beside", Doc: "linears that read the same tensor choose their kernels together, by their total number of weight rows",
	Pattern: graph.Pattern{Kinds: linearKinds},
	Replace: func(b *graph.Builder, m *graph.Match) graph.Operator {
		o := m.Last().(*linear)
		rows, tiled := 0, 0
		readers, _ := b.Readers(o.x)
		for _, r := range readers {
			if other, ok := r.(*linear); ok && other.x == o.x {
				rows += other.w.Rows
				if !other.Last {
					tiled += other.w.Rows
				}
			}
		}
		if rows == o.w.Rows {
			return nil
		}
		fused := *o
		fused.beside, fused.tiled = rows, tiled
		fused.plan(b.Limits())
		fused.makeKernels(b)
		return &fused
	},
}
