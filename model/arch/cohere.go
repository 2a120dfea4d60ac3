package arch

import "gpuscope/ops/basic"

// cohere2 is the architecture of Cohere's Command R7B and Command A (2024). Attention and MLP read the same
// norm, a LayerNorm without bias, and run in parallel. Three of four layers have a sliding window, and only
// these layers have RoPE. The logits are multiplied by a factor.
var cohere2 = Architecture{
	Name:       "cohere2",
	Gate:       gated{"silu_mul", basic.SiLUMul},
	layerNorms: true, Parallel: true, fullUnrotated: true, nullUnrotated: true,
	Gguf: Spelling{
		Class: ggufClass("cohere2", map[string]any{"attention.sliding_window_pattern": 4}),
		Names: &ggufNames, Keys: &cohereKeys, pairs: &neighbours, Only: ggufOnly, storedBiases: true,
	},
	Hf: Spelling{
		Class: class{
			Name: "Cohere2Config",
			Defaults: map[string]any{
				"hidden_size": 8192, "intermediate_size": 22528, "num_hidden_layers": 40,
				"num_attention_heads": 64, "max_position_embeddings": 8192, "layer_norm_eps": 1e-5,
				"rope_theta": 1e4, "tie_word_embeddings": true, "attention_bias": false,
				"sliding_window": 4096, "sliding_window_pattern": 4, "logit_scale": 0.0625,
			},
			inert: []string{"cache_implementation", "_sliding_window_pattern"},
		},
		Names: &hfNames, Keys: &cohereHFKeys, pairs: &neighbours, Only: []only{hfQuantized, hfSiLU},
	},
}

var (
	cohereKeys = func() keys {
		k := olmoKeys
		k.Eps, k.logitScale = "attention.layer_norm_epsilon", "logit_scale"
		return k
	}()
	cohereHFKeys = func() keys {
		k := patternHFKeys
		k.Eps, k.logitScale = "layer_norm_eps", "logit_scale"
		k.biases, k.outBias = "attention_bias", "attention_bias"
		return k
	}()
)
