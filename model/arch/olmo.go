package arch

import "gpuscope/ops/basic"

// olmo2 is the architecture of Ai2's OLMo 2 (2024). The outputs of attention and MLP are normalized, but not
// their inputs. The queries of all heads are normalized together, and so are the keys. Source: OLMo team,
// "2 OLMo 2 Furious".
// GGUF files of OLMo 3 have the same architecture, with a sliding window.
var olmo2 = Architecture{
	Name:      "olmo2",
	Gate:      gated{"silu_mul", basic.SiLUMul},
	WideNorms: true, PostNorms: true, NoPreNorms: true,
	Gguf: Spelling{
		Class: class{
			Name: "llama.cpp's olmo2",
			Defaults: map[string]any{
				"rope.freq_base": 1e4, "attention.sliding_window_pattern": 4,
			},
		},
		Names: &ggufNames, Keys: &olmoKeys, pairs: &halves, Only: ggufOnly, implied: plainLocalRope,
	},
	Hf: Spelling{
		Class: class{Name: "Olmo2Config", Defaults: olmoDefaults},
		Names: &postNormHFNames, Keys: &biasedHFKeys, pairs: &halves, Only: []only{hfQuantized, hfSiLU},
	},
}

// olmo3 is the architecture of Hugging Face folders of Ai2's OLMo 3 (2025). It is an olmo2 in which three of
// every four layers have a sliding window. The RoPE of these three is not scaled for long contexts.
var olmo3 = Architecture{
	Name:      "olmo3",
	Gate:      gated{"silu_mul", basic.SiLUMul},
	WideNorms: true, PostNorms: true, NoPreNorms: true,
	Hf: Spelling{
		Class: class{
			Name:     "Olmo3Config",
			Defaults: with(map[string]any{"sliding_window": 4096}, olmoDefaults),
		},
		Names: &postNormHFNames, Keys: &olmo3HFKeys, pairs: &halves, Only: []only{hfQuantized, hfSiLU},
		fullEach: 4, implied: plainLocalRope,
	},
}

// olmoe is the architecture of Muennighoff et al., OLMoE (2024). It is a Llama with experts. The queries of
// all heads are normalized together, and so are the keys.
var olmoe = Architecture{
	Name:      "olmoe",
	Gate:      gated{"silu_mul", basic.SiLUMul},
	WideNorms: true, Experts: true,
	Gguf: Spelling{
		Class: ggufClass("olmoe", nil),
		Names: &ggufNames, Keys: &mixtureKeys, pairs: &halves, Only: mixtureOnly,
	},
	Hf: Spelling{
		Class: class{
			Name: "OlmoeConfig",
			Defaults: map[string]any{
				"hidden_size": 2048, "intermediate_size": 2048, "num_hidden_layers": 16,
				"num_attention_heads": 16, "max_position_embeddings": 4096, "rms_norm_eps": 1e-5,
				"rope_theta": 1e4, "tie_word_embeddings": false, "attention_bias": false,
				"num_experts": 64, "num_experts_per_tok": 8, "norm_topk_prob": false,
			},
			inert: hfRouterInert,
		},
		Names: &hfNames, Keys: &olmoeHFKeys, pairs: &halves,
		Only: []only{hfQuantized, hfSiLU, {"clip_qkv", nil, "limits of queries, keys and values"}},
	},
}

// plainLocalRope gives layers with a sliding window a RoPE with the same base as in other layers, but without
// scaling.
func plainLocalRope(c *Config) {
	c.LocalRope = &Rotation{Dims: c.Rope.Dims, Base: c.Rope.Base, Scale: 1}
}

var (
	olmoDefaults = map[string]any{
		"hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
		"num_attention_heads": 32, "max_position_embeddings": 2048, "rms_norm_eps": 1e-5,
		"rope_theta": 1e4, "tie_word_embeddings": false, "attention_bias": false,
	}
	olmoKeys = func() keys {
		k := ggufKeys
		k.window, k.fullEach = "attention.sliding_window", "attention.sliding_window_pattern"
		return k
	}()
	olmoeHFKeys = func() keys {
		k := biasedHFKeys
		k.experts, k.chosen, k.normalize = "num_experts", "num_experts_per_tok", "norm_topk_prob"
		return k
	}()
	olmo3HFKeys = func() keys {
		k := biasedHFKeys
		k.window, k.kinds = "sliding_window", hfKinds
		return k
	}()
)

// postNormHFNames are the names of tensors in models that normalize the outputs of attention and MLP, but not
// their inputs.
var postNormHFNames = func() names {
	n := hfNames
	n.AttnPostNorm, n.FfnPostNorm = "post_attention_layernorm.weight", "post_feedforward_layernorm.weight"
	return n
}()
