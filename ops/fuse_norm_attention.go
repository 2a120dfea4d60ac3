package ops

import "gpuscope/engine/graph"

// fuseNormAttention makes attention of one token normalize the heads of q and k as it loads them. This is
// possible because each workgroup of attention loads whole heads. The rule applies only if attention also
// applies RoPE (fuseRopeAttention). With several tokens the norms still have their own dispatch.
//
// The rule replaces the norms and the attention separately, in the order of the graph.
var fuseNormAttention = graph.Fusion{
	Name: "norm_attention", Doc: "attention of one token normalizes q and k as it loads them",
	Pattern: graph.Pattern{Kinds: []string{kindRMSNorm.Name, kindSDPA.Name}},
	Replace: func(b *graph.Builder, m *graph.Match) graph.Operator {
		switch o := m.Last().(type) {
		case *rmsNorm:
			attention := attentionAfter(b, o)
			if attention == nil {
				return nil
			}
			fused := *o
			fused.folds = attention.qHeads + attention.ownHeads()
			return &fused
		case *sdpa:
			norms, ok := b.Producer(o.q).(*rmsNorm)
			if !ok || norms.folds == 0 {
				return nil
			}
			fused := *o
			fused.norms = norms
			fused.makeDecodeKernels(b)
			return &fused
		}
		return nil
	},
}

// attentionAfter returns the attention operator that can compute the norms of q and k. It returns nil if
// there is none.
func attentionAfter(b *graph.Builder, o *rmsNorm) *sdpa {
	var attention *sdpa
	for _, norm := range o.norms() {
		readers, all := b.Readers(norm.y)
		if !all || len(readers) != 1 {
			return nil
		}
		reader, ok := readers[0].(*sdpa)
		if !ok || attention != nil && reader != attention {
			return nil
		}
		attention = reader
	}
	k, bound := graph.None, 7 // storage buffers that the kernels for one token bind
	if o.other != nil {
		k, bound = o.other.y, 10
	}
	if attention.rope == nil || attention.q != o.y || attention.k != k ||
		k != graph.None && (attention.v == o.y || attention.v == k) ||
		!attention.Routes.Has(sdpaFlashDecoding) || b.RouteAsked(attention.y) || b.RouteAsked(o.y) ||
		!attention.binds(b, bound) {
		return nil
	}
	return attention
}
