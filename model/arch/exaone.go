package arch

import "gpuscope/ops/basic"

// exaone4 is the architecture of: LG AI Research, EXAONE 4.0 (2025). The outputs of attention and MLP are
// normalized, but not their inputs. The queries and keys of each head are normalized. In the 32B model, three
// of four layers have a sliding window, and only these layers have RoPE. The small model has full attention
// and RoPE in every layer.
var exaone4 = Architecture{
	Name:      "exaone4",
	Gate:      gated{"silu_mul", basic.SiLUMul},
	HeadNorms: true, PostNorms: true, NoPreNorms: true, fullUnrotated: true,
	Gguf: Spelling{
		Class: ggufClass("exaone4", map[string]any{
			"attention.sliding_window": 4096, "attention.sliding_window_pattern": 4,
		}),
		Names: &ggufNames, Keys: &olmoKeys, pairs: &halves, Only: ggufOnly,
		implied: func(c *Config) {
			// llama.cpp applies the window only if there are 64 layers, as in the 32B model.
			if c.Layers != 64 {
				clear(c.Windows)
				c.Unrotated = nil
			}
		},
	},
	Hf: Spelling{
		Class: class{
			Name: "Exaone4Config",
			Defaults: map[string]any{
				"hidden_size": 4096, "intermediate_size": 16384, "num_hidden_layers": 32,
				"num_attention_heads": 32, "num_key_value_heads": 32, "max_position_embeddings": 2048,
				"rms_norm_eps": 1e-5, "rope_theta": 1e4, "tie_word_embeddings": false,
				"sliding_window": 4096, "sliding_window_pattern": 4,
			},
			inert: []string{"cache_implementation"},
		},
		Names: &postNormHFNames, Keys: &patternHFKeys, pairs: &halves, Only: []only{hfQuantized, hfSiLU},
	},
}

// patternHFKeys is a copy of windowedHFKeys plus the keys that select the layers with a window.
var patternHFKeys = func() keys {
	k := windowedHFKeys
	k.fullEach, k.kinds = "sliding_window_pattern", hfKinds
	return k
}()
