package ops

import (
	"gpuscope/engine/graph"
)

// fuseSpread leaves what gate and up make of one row to the products that read it, spread: so their lanes
// load what lies together.
//
// It takes what gives the row and each of the products by itself, in the order of the graph.
var fuseSpread = graph.Fusion{
	Name: "spread", Doc: "one row of a gated MLP lies as the linears after it load it",
	Pattern: graph.Pattern{Kinds: linearKinds},
	Replace: func(b *graph.Builder, m *graph.Match) graph.Operator {
		fused := *m.Last().(*linear)
		if before, ok := viewed(b, fused.x).(*linear); ok && before.spread != nil {
			fused.before = before.spread
			fused.makeKernels(b)
			return &fused
		}
		if fused.gated == nil || fused.shapes[linearGEMV].batch != 1 {
			return nil
		}
		if fused.spread = spreadBehind(b, fused.y, fused.cols(), fused.y); fused.spread == nil {
			return nil
		}
		fused.makeKernels(b)
		return &fused
	},
}
