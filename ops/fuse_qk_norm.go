package ops

import (
	"gpuscope/engine/graph"
	"gpuscope/ops/internal/shape"
)

// fuseQKNorm is for models that normalize each head of q and of k. It replaces the two dispatches of these
// norms by one. Two dispatches that run in parallel need two barriers if they read results of the dispatches
// right before them. A single dispatch needs only one barrier, so it is faster. The arithmetic is the same,
// so results are bit-identical.
var fuseQKNorm = graph.Fusion{
	Name: "qk_norm", Doc: "one dispatch computes the norms of q and k",
	Pattern: graph.Pattern{Kinds: []string{kindRMSNorm.Name}}, Beside: []string{kindRMSNorm.Name},
	Replace: func(b *graph.Builder, m *graph.Match) graph.Operator {
		fused, other := *m.Ops[0].(*rmsNorm), m.Last().(*rmsNorm)
		for _, o := range []*rmsNorm{&fused, other} {
			if o.other != nil || o.folds > 0 || o.residual != graph.None ||
				shape.Last(b.MinDims(o.x)) != shape.Last(b.MaxDims(fused.x)) ||
				shape.Last(b.MaxDims(o.x)) != shape.Last(b.MaxDims(fused.x)) {
				return nil
			}
		}
		if fused.eps != other.eps {
			return nil
		}
		fused.other = other
		fused.makeKernel(b)
		return &fused
	},
}
