package ops

import (
	"gpuscope/engine/graph"
	"gpuscope/ops/basic"
)

// fuseGateUp replaces the linears gate and up of a gated MLP by one linear. Its weights are the rows of gate,
// followed by the rows of up. The kernels for one row and the tiled kernels also compute act(gate) * up. A
// single dispatch is then enough, and each lane loads its part of x only once for both branches. For 2 to 16
// rows the linear computes both branches, and a second dispatch computes act(gate) * up.
var fuseGateUp = graph.Fusion{
	Name: "gate_up", Doc: "one linear replaces the linears gate and up of a gated MLP; it also computes " +
		"act(gate) * up, except for 2 to 16 rows",
	Pattern: graph.Pattern{
		Kinds: basic.GatedKinds, Of: []graph.Pattern{{Kinds: linearKinds}, {Kinds: linearKinds}},
	},
	Replace: func(b *graph.Builder, m *graph.Match) graph.Operator {
		gate, up, joined := m.Ops[0].(*linear), m.Ops[1].(*linear), m.Last().(*basic.GatedOp)
		alone := func(o *linear) bool {
			return o.bias == graph.None && o.residual == graph.None && len(o.parts) == 1 && !o.Last
		}
		w, ok := gate.w.Above(up.w)
		if !ok || gate.w.Rows != up.w.Rows || gate.x != up.x || !alone(gate) || !alone(up) {
			return nil
		}
		fused := &linear{
			x: gate.x, y: joined.Y, w: w, bias: graph.None, residual: graph.None, gated: joined.GatedRow,
			parts: w.Declare(b), Product: b.Scratch(b.Name(joined.Y)+".product", graph.F32),
		}
		fused.plan(b.Limits())
		if len(fused.parts) > 1 || fused.shapes[linearGEMV].lanes == 0 {
			return nil
		}
		fused.makeKernels(b)
		return fused
	},
}
