package ops

import "gpuscope/engine/graph"

// fuseSpread stores act(gate) * up in interleaved order if it has a single row and only linears read it.
// Neighboring lanes of these linears then load neighboring addresses.
//
// The rule replaces the producer of the row and each of the linears separately, in the order of the graph.
var fuseSpread = graph.Fusion{
	Name: "spread", Doc: "for one row, act(gate) * up of a gated MLP is stored in the order in which later linears load it",
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
		if fused.spread = spreadAfter(b, fused.y, fused.cols(), fused.y); fused.spread == nil {
			return nil
		}
		fused.makeKernels(b)
		return &fused
	},
}
