package ops

import "gpuscope/engine/graph"

// fuseRopeAttention makes attention apply RoPE to q and k. For one token, the attention kernels apply RoPE as
// they load q and k. This saves one level of the step in every layer. For several tokens, RoPE still has its
// own dispatch.
var fuseRopeAttention = graph.Fusion{
	Name: "rope_attention", Doc: "attention of one token applies RoPE to q and k as it loads them",
	Pattern: graph.Pattern{
		Kinds: []string{kindSDPA.Name},
		Of:    []graph.Pattern{{Kinds: []string{kindRotary.Name, kindRotaryHF.Name}}},
	},
	Replace: func(b *graph.Builder, m *graph.Match) graph.Operator {
		attention := *m.Last().(*sdpa)
		given := m.Ops[0].(rotation).parts()
		if attention.rope != nil || attention.q != given.yq || attention.k != given.yk ||
			!attention.Routes.Has(sdpaFlashDecoding) || !attention.binds(b, 8) {
			return nil
		}
		switch o := m.Ops[0].(type) {
		case *rotary:
			rope := *o
			attention.rope = &turning{rotation: &rope, pairs: neighbourPairs}
		case *rotaryHF:
			table := b.MaxDims(o.cos)
			if o.start != attention.position || table[0] < attention.context || table[1]%8 != 0 {
				return nil
			}
			rope := *o
			attention.rope = &turning{rotation: &rope, pairs: halfPairs, half: table[1] / 8}
		}
		rope := attention.rope.parts()
		rope.yq = b.Scratch(b.Name(given.yq)+".turned", graph.F32)
		if given.yk != graph.None {
			rope.yk = b.Scratch(b.Name(given.yk)+".turned", graph.F32)
		}
		rope.turnBoth(b)
		attention.q, attention.k = rope.q, rope.k
		attention.makeDecodeKernels(b)
		return &attention
	},
}
