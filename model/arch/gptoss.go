package arch

import "gpuscope/ops/basic"

// gptOSS is the architecture of OpenAI's gpt-oss (2025). All layers have experts, and every second layer has
// a sliding window. Attention has a sink for each head, and all projections have biases. The router computes
// a softmax over the logits of the chosen experts only.
var gptOSS = Architecture{
	Name:   "gpt-oss",
	Gate:   gated{"clamped_swiglu", basic.ClampedSwiGLU},
	Biases: true, Sinks: true, Experts: true, normalized: true, ExpertBiases: true,
	Gguf: Spelling{
		Class: ggufClass("gpt-oss", map[string]any{"attention.sliding_window_pattern": 2}),
		Names: &gptOSSNames, Keys: &gptOSSKeys, pairs: &halves, Only: mixtureOnly, storedBiases: true,
	},
	Hf: Spelling{
		Called: []string{"gpt_oss"},
		Class: class{
			Name: "GptOssConfig",
			Defaults: map[string]any{
				"hidden_size": 2880, "intermediate_size": 2880, "num_hidden_layers": 36,
				"num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64,
				"max_position_embeddings": 131072, "rms_norm_eps": 1e-5, "rope_theta": 150000.0,
				"sliding_window": 128, "tie_word_embeddings": false, "attention_bias": true,
				"num_local_experts": 128, "num_experts_per_tok": 4,
			},
			inert: append(hfRouterInert[:len(hfRouterInert):len(hfRouterInert)],
				"experts_per_token", "initial_context_length", "quantization_config"),
		},
		Names: &gptOSSHFNames, Keys: &gptOSSHFKeys, pairs: &halves, fullEach: 2,
		transposed: true, alternating: true,
		// If a file has no RoPE settings, transformers uses a YaRN scaling by default. The reader does not
		// support this default and refuses such a file, because ropeKeys is not empty.
		ropeKeys: []string{hfOriginal},
		Only: []only{
			{"quantization_config.quant_method", orNull("mxfp4"), "weights already quantized by another program"},
			hfSiLU,
			{"swiglu_limit", 7.0, "other limits of gate and up"},
		},
	},
}

var (
	gptOSSNames = func() names {
		n := ggufNames
		n.FfnNorm = "post_attention_norm.weight"
		return n
	}()
	gptOSSHFNames = func() names {
		n := hfNames
		n.Router, n.RouterBias = "mlp.router.weight", "mlp.router.bias"
		return n
	}()
	gptOSSKeys = func() keys {
		k := mixtureKeys
		k.window, k.fullEach = "attention.sliding_window", "attention.sliding_window_pattern"
		return k
	}()
	gptOSSHFKeys = func() keys {
		k := biasedHFKeys
		k.window, k.kinds = "sliding_window", hfKinds
		k.experts, k.chosen = "num_local_experts", "num_experts_per_tok"
		return k
	}()
)
