package ops

import (
	"gpuscope/engine/graph"
)

// fuseGateUp makes one product of the two branches of a gated MLP, of which the weights are put one above the
// other. Its kernels for one row and by tiles join them, too: act(gate) * up is one dispatch, and what lanes
// hold of x serves both. From 2 to 16 rows one product gives both, and a dispatch after it joins them.
var fuseGateUp = graph.Fusion{
	Name: "gate_up", Doc: "the linears gate and up of a gated MLP are one, which joins them but for 2 to 16 rows",
	Pattern: graph.Pattern{
		Kinds: gatedKinds, Of: []graph.Pattern{{Kinds: linearKinds}, {Kinds: linearKinds}},
	},
	Replace: func(b *graph.Builder, m *graph.Match) graph.Operator {
		gate, up, joined := m.Ops[0].(*linear), m.Ops[1].(*linear), m.Last().(*gatedOp)
		alone := func(o *linear) bool {
			return o.bias == graph.None && o.residual == graph.None && len(o.parts) == 1 && !o.Last
		}
		w, ok := gate.w.Above(up.w)
		if !ok || gate.w.Rows != up.w.Rows || gate.x != up.x || !alone(gate) || !alone(up) {
			return nil
		}
		fused := &linear{
			x: gate.x, y: joined.y, w: w, bias: graph.None, residual: graph.None, gated: joined.gatedRow,
			parts: w.Declare(b), Product: b.Scratch(b.Name(joined.y)+".product", graph.F32),
		}
		fused.plan(b.Limits())
		if len(fused.parts) > 1 || fused.shapes[linearGEMV].lanes == 0 {
			return nil
		}
		fused.makeKernels(b)
		return fused
	},
}
