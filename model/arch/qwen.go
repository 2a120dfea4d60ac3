package arch

import "gpuscope/ops/basic"

// Qwen2 is the architecture of Yang et al., Qwen2 (2024). It is a Llama whose query, key and value
// projections have biases.
var Qwen2 = Architecture{
	Name:   "qwen2",
	Gate:   gated{"silu_mul", basic.SiLUMul},
	Biases: true,
	Gguf: Spelling{
		Class: ggufClass("qwen2", nil),
		Names: &ggufNames, Keys: &ggufKeys, pairs: &halves, Only: ggufOnly,
	},
	Hf: Spelling{
		Class: class{Name: "Qwen2Config", Defaults: qwenDefaults(nil)},
		Names: &hfNames, Keys: &qwenHFKeys, pairs: &halves, Only: []only{hfQuantized, hfSiLU},
	},
}

// Qwen3 is the architecture of Yang et al., Qwen3 (2025). It has no biases, and normalizes the queries and
// keys of each head.
var Qwen3 = Architecture{
	Name:      "qwen3",
	Gate:      gated{"silu_mul", basic.SiLUMul},
	HeadNorms: true,
	Gguf: Spelling{
		Class: ggufClass("qwen3", nil),
		Names: &ggufNames, Keys: &ggufKeys, pairs: &halves, Only: ggufOnly,
	},
	Hf: Spelling{
		Class: class{Name: "Qwen3Config", Defaults: qwenDefaults(map[string]any{"head_dim": 128})},
		Names: &hfNames, Keys: &qwenHFKeys, pairs: &halves,
		Only: []only{hfQuantized, hfSiLU, hfAttentionBias},
	},
}

// qwen3MoE is the architecture of the mixtures of experts of Qwen3 (2025), among them Qwen3-Coder 30B-A3B. It
// is a Qwen3 with experts.
var qwen3MoE = Architecture{
	Name:      "qwen3moe",
	Gate:      gated{"silu_mul", basic.SiLUMul},
	HeadNorms: true, Experts: true, normalized: true,
	Gguf: Spelling{
		Class: ggufClass("qwen3moe", nil),
		Names: &ggufNames, Keys: &mixtureKeys, pairs: &halves, Only: mixtureOnly,
	},
	Hf: Spelling{
		Called: []string{"qwen3_moe"},
		Class: class{
			Name: "Qwen3MoeConfig",
			Defaults: qwenDefaults(map[string]any{
				"hidden_size": 2048, "intermediate_size": 6144, "num_hidden_layers": 24,
				"num_key_value_heads": 4, "decoder_sparse_step": 1, "moe_intermediate_size": 768,
				"num_experts": 128, "num_experts_per_tok": 8, "norm_topk_prob": false,
			}),
			inert: hfRouterInert,
		},
		Names: &hfNames, Keys: &qwenMoEHFKeys, pairs: &halves,
		Only: []only{hfQuantized, hfSiLU, hfAttentionBias},
	},
}

// hfRouterInert lists configuration keys of models with experts. These keys do not affect the logits.
var hfRouterInert = []string{"output_router_logits", "router_aux_loss_coef", "router_jitter_noise"}

// qwenMoEHFKeys is a copy of qwenHFKeys with the keys of experts.
var qwenMoEHFKeys = func() keys {
	k := qwenHFKeys
	k.experts, k.chosen, k.expertFfn = "num_experts", "num_experts_per_tok", "moe_intermediate_size"
	k.normalize, k.sparseEach, k.dense = "norm_topk_prob", "decoder_sparse_step", "mlp_only_layers"
	return k
}()

// qwenDefaults returns the defaults that Qwen2 and Qwen3 share in transformers, plus the defaults in `own`.
func qwenDefaults(own map[string]any) map[string]any {
	return with(map[string]any{
		"hidden_size": 4096, "intermediate_size": 22016, "num_hidden_layers": 32,
		"num_attention_heads": 32, "num_key_value_heads": 32, "max_position_embeddings": 32768,
		"rms_norm_eps": 1e-6, "rope_theta": 1e4, "use_sliding_window": false, "sliding_window": 4096,
		"max_window_layers": 28, "tie_word_embeddings": false,
	}, own)
}

// qwenHFKeys is a copy of windowedHFKeys with further keys for Qwen's sliding window. If use_sliding_window
// is true, the window applies to layer max_window_layers and all later layers.
var qwenHFKeys = func() keys {
	k := windowedHFKeys
	k.windowUsed, k.windowFrom, k.kinds = "use_sliding_window", "max_window_layers", hfKinds
	return k
}()
