package ops

import "gpuscope/engine/graph"

// fuseRope applies RoPE to q and k in one dispatch. Two parallel dispatches that read recent results need two
// barriers, so a single dispatch is faster. The arithmetic is the same, so results are bit-identical.
var fuseRope = graph.Fusion{
	Name: "rope", Doc: "one dispatch applies RoPE to q and k",
	Pattern: graph.Pattern{Kinds: []string{kindRotary.Name, kindRotaryHF.Name}},
	Replace: func(b *graph.Builder, m *graph.Match) graph.Operator {
		switch o := m.Last().(type) {
		case *rotary:
			fused := *o
			fused.turnBoth(b)
			return &fused
		case *rotaryHF:
			fused := *o
			fused.turnBoth(b)
			return &fused
		}
		return nil
	},
}
