package model

import "gpuscope/ops"

// llama is Touvron et al., LLaMA (2023), with grouped-query attention (Ainslie et al., GQA, 2023): no biases,
// every layer alike. Files of Llama 1 to 3, Mistral and SmolLM say that they are of it. Where one states a
// window, as Jiang et al., Mistral 7B (2023), all layers have it. Converters to GGUF reorder the rows of the
// queries and keys, so that the pairs that are turned together are neighbours.
var llama = architecture{
	name: "llama",
	gate: gated{"silu_mul", ops.SiLUMul},
	gguf: spelling{names: &ggufNames, keys: &ggufKeys, pairs: &neighbours, only: ggufOnly},
	hf: spelling{
		called: []string{"llama", "mistral"},
		names:  &hfNames, keys: &hfKeys, pairs: &halves, only: hfOnly,
	},
}
