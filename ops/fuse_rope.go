package ops

import "gpuscope/engine/graph"

// fuseRope applies RoPE to q and k in one dispatch. Two dispatches that run in parallel need two barriers if
// they read results of the dispatches right before them. A single dispatch needs only one barrier, so it is
// faster. The arithmetic is the same, so results are bit-identical.
var fuseRope = graph.Fusion{
	Name: "rope", Doc: "one dispatch applies RoPE to q and k",
	Pattern: graph.Pattern{Kinds: []string{kindRotary.Name, kindRotaryHF.Name}},
	Replace: func(b *graph.Builder, m *graph.Match) graph.Operator {
		if m.Last().(rotation).parts().k == graph.None {
			return nil // there is only one dispatch
		}
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
