package ops

import (
	"gpuscope/engine/graph"
)

// fuseBeside tells linears that read the same tensor of each other, as q, k and v do. They run side by side,
// so together they have the workgroups that fill a device, and all take tiles of one size: on an H200 those
// of two sizes do not overlap.
var fuseBeside = graph.Fusion{
	Name: "beside", Doc: "linears that read the same tensor choose their kernels as one of all their rows would",
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
