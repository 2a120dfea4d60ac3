package ops

import (
	"gpuscope/engine/graph"
)

// fuseRope turns q and k in one dispatch: two side by side that each read what was just written have a
// barrier each. The arithmetic is the same, so that no bit changes.
var fuseRope = graph.Fusion{
	Name: "rope", Doc: "q and k are turned by one dispatch",
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
