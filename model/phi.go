package model

import "gpuscope/ops"

// phi3 is Abdin et al., Phi-3 Technical Report (2024): a Llama whose queries, keys and values are one matrix,
// and gate and up another. Those of long contexts divide the frequencies of the rotation by factors, one list
// for short and one for long contexts: Ding et al., LongRoPE (2024).
var phi3 = architecture{
	name:  "phi3",
	gate:  gated{"silu_mul", ops.SiLUMul},
	fused: true,
	gguf:  spelling{names: &ggufNames, keys: &ggufKeys, pairs: &halves, only: ggufOnly},
	hf:    spelling{names: &hfNames, keys: &hfKeys, pairs: &halves, only: hfOnly},
}
