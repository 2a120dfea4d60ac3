package model

import "gpuscope/ops"

// llama is Touvron et al., LLaMA (2023), with grouped-query attention (Ainslie et al., GQA, 2023): no biases,
// every layer alike. Files of Llama 1 to 3, Mistral and SmolLM say that they are of it.
var llama = architecture{
	name: "llama",
	gate: gated{"silu_mul", ops.SiLUMul},
	gguf: spelling{
		names:  &ggufNames,
		keys:   &ggufKeys,
		rotate: ops.ApplyRotaryEmb,
		only: []only{
			{"expert_count", 0, "a mixture of experts"},
			{"attention.sliding_window", 0, "attention in a sliding window"},
		},
	},
}
