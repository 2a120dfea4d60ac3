package model

import (
	"math"

	"gpuscope/ops"
)

// gemma3 is the Gemma team, Gemma 3 Technical Report (2025). Of six layers five see a window and have a
// rotation of their own; norms stand before and after attention and MLP, and at each head's queries and keys.
// Norms of GGUF files multiply by their weights: converters added the 1.
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
}

var gemmaKeys = func() keys {
	k := ggufKeys
	k.fullEach, k.localBase = "attention.sliding_window_pattern", "rope.freq_base_swa"
	return k
}()
