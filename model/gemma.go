package model

import (
	"math"
	"slices"

	"gpuscope/ops"
)

// gemma3 is the Gemma team, Gemma 3 Technical Report (2025). Of six layers five see a window and have a
// rotation of their own; norms stand before and after attention and MLP, and at each head's queries and keys.
// Norms multiply by 1 + their weights in its folders; converters to GGUF added the 1.
var gemma3 = architecture{
	name:      "gemma3",
	gate:      gated{"gelu_mul", ops.GELUMul},
	headNorms: true, postNorms: true, scaledEmbedding: true,
	fullEach: 6, localBase: 10000,
	gguf: spelling{
		names: &ggufNames, keys: &gemmaKeys, pairs: &halves, only: ggufOnly,
		implied: func(c *config) {
			// Scores of the 27B alone, which is told by its layers, are not scaled by the size of a head.
			if c.Scale == 0 && c.Layers == 62 {
				c.Scale = 1 / math.Sqrt(float64(c.Dim)/float64(c.Heads))
			}
		},
	},
	hf: spelling{
		called: []string{"gemma3_text"},
		names:  &gemmaHFNames, keys: &gemmaHFKeys, pairs: &halves, tied: true, onePlus: true,
		only: append(slices.Clip(hfOnly),
			only{"hidden_activation", "gelu_pytorch_tanh", "another activation"},
			only{"attn_logit_softcapping", nil, "soft capping of scores"},
			only{"final_logit_softcapping", nil, "soft capping of logits"},
			only{"use_bidirectional_attention", false, "attention to what follows"}),
		// What is stated is the number whose root scores are divided by.
		implied: func(c *config) {
			if c.Scale != 0 {
				c.Scale = 1 / math.Sqrt(c.Scale)
			}
		},
	},
}

var (
	gemmaHFNames = func() names {
		n := hfNames
		n.attnPostNorm, n.ffnNorm = n.ffnNorm, "pre_feedforward_layernorm.weight"
		n.ffnPostNorm = "post_feedforward_layernorm.weight"
		return n
	}()
	gemmaHFKeys = func() keys {
		k := hfKeys
		k.fullEach, k.localBase = "sliding_window_pattern", "rope_local_base_freq"
		k.scale = "query_pre_attn_scalar"
		return k
	}()
)

var gemmaKeys = func() keys {
	k := ggufKeys
	k.fullEach, k.localBase = "attention.sliding_window_pattern", "rope.freq_base_swa"
	return k
}()
