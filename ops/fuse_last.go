package ops

import "gpuscope/engine"

// fuseLast has a linear make the last row alone where nothing reads the others: what cuts that row out is
// gone, and of a prompt one row is made in place of all. At one row nothing is different, not even the name,
// so that its layer is like all others there.
var fuseLast = engine.Fusion{
	Name: "last", Doc: "a linear of which the last row alone is read makes that alone",
	Pattern: engine.Pattern{Kinds: []string{"slice"}, Of: []engine.Pattern{{Kinds: linearKinds}}},
	Unnamed: true,
	Replace: func(b *engine.Builder, m *engine.Match) engine.Operator {
		before, cut := m.Ops[0].(*linear), m.Last().(*gather)
		dims := b.MaxDims(before.y)
		columns := len(dims) - 1
		if cut.ends != [2]Int{Fixed(-1), Fixed(ToEnd)} || cut.exact || cut.axis == columns ||
			dims[cut.axis] != product(dims[:columns]) || before.shapes[0].batch != 1 || before.gated != nil ||
			b.RouteAsked(before.y) {
			return nil
		}
		fused := *before
		fused.last, fused.y = true, cut.y
		fused.plan(b.Limits())
		fused.makeKernels(b)
		return &fused
	},
}
