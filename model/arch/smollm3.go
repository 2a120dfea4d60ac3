package arch

import "gpuscope/ops/basic"

// smolLM3 is the architecture of Hugging Face's SmolLM3 (2025). It is a Llama without RoPE in every fourth
// layer.
var smolLM3 = Architecture{
	Name: "smollm3",
	Gate: gated{"silu_mul", basic.SiLUMul},
	Gguf: Spelling{
		Class: ggufClass("smollm3", nil),
		Names: &ggufNames, Keys: &ggufKeys, pairs: &neighbours, Only: ggufOnly, storedBiases: true,
		unrotatedEach: 4,
	},
	Hf: Spelling{
		Class: class{
			Name: "SmolLM3Config",
			Defaults: map[string]any{
				"hidden_size": 2048, "intermediate_size": 11008, "num_hidden_layers": 36,
				"num_attention_heads": 16, "num_key_value_heads": 4, "max_position_embeddings": 32768,
				"rms_norm_eps": 1e-6, "rope_theta": 2e6, "tie_word_embeddings": true,
				"attention_bias": false, "no_rope_layer_interval": 4,
			},
			// The keys of the sliding window have no effect, because use_sliding_window must be false.
			inert: []string{"sliding_window", hfKinds, "max_window_layers", "pretraining_tp"},
		},
		Names: &hfNames, Keys: &smolLM3HFKeys, pairs: &halves,
		Only: []only{
			hfQuantized, hfSiLU, hfMLPBias, {"use_sliding_window", false, "sliding-window attention"},
		},
	},
}

var smolLM3HFKeys = func() keys {
	k := biasedHFKeys
	k.rotated, k.unrotatedEach = "no_rope_layers", "no_rope_layer_interval"
	return k
}()
