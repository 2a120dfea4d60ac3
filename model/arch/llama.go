package arch

import (
	"slices"

	"gpuscope/ops/basic"
)

// Llama is the architecture of Touvron et al., LLaMA (2023), with grouped-query attention (Ainslie et al.,
// GQA, 2023). It has no biases, and all layers have the same structure. GGUF files of Llama 1 to 3, Mistral
// and SmolLM state this architecture. Programs that convert models to GGUF reorder the rows of the query and
// key matrices, so that the two dims of each RoPE pair are adjacent.
var Llama = Architecture{
	Name: "llama",
	Gate: gated{"silu_mul", basic.SiLUMul},
	Gguf: Spelling{
		Class: ggufClass("llama", nil),
		Names: &ggufNames, Keys: &ggufKeys, pairs: &neighbours, Only: ggufOnly,
	},
	Hf: Spelling{
		Class: class{
			Name: "LlamaConfig",
			Defaults: map[string]any{
				"hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
				"num_attention_heads": 32, "max_position_embeddings": 2048, "rms_norm_eps": 1e-6,
				"rope_theta": 1e4, "tie_word_embeddings": false,
			},
			inert: []string{"pretraining_tp"},
		},
		Names: &hfNames, Keys: &hfKeys, pairs: &halves,
		Only: []only{hfQuantized, hfSiLU, hfAttentionBias, hfMLPBias},
	},
}

// mistral is the architecture of Jiang et al., Mistral 7B (2023). It is a Llama with sliding-window attention
// in all layers. If a file states no window size, the default of transformers applies.
var mistral = Architecture{
	Name: "mistral",
	Gate: gated{"silu_mul", basic.SiLUMul},
	Hf: Spelling{
		Class: class{
			Name: "MistralConfig",
			Defaults: map[string]any{
				"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
				"num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 131072,
				"rms_norm_eps": 1e-6, "rope_theta": 1e4, "sliding_window": 4096,
				"tie_word_embeddings": false,
			},
		},
		Names: &hfNames, Keys: &windowedHFKeys, pairs: &halves, Only: []only{hfQuantized, hfSiLU},
	},
}

// mistral3 is the architecture of Ministral 3 (2025), and in GGUF also of Mistral Small 3. It is a Llama with
// YaRN. Queries are multiplied by a factor that grows with the position.
var mistral3 = Architecture{
	Name: "mistral3",
	Gate: gated{"silu_mul", basic.SiLUMul},
	Gguf: Spelling{
		Class: ggufClass("mistral3", nil),
		Names: &ggufNames, Keys: &mistral3Keys, pairs: &neighbours, Only: ggufOnly, storedBiases: true,
		ropeKeys: mistral3RopeKeys,
	},
	Hf: Spelling{
		Called: []string{"ministral3"},
		Class: class{
			Name: "Ministral3Config",
			Defaults: map[string]any{
				"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 34,
				"num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
				"max_position_embeddings": 262144, "rms_norm_eps": 1e-5, "rope_theta": 1e4,
				"tie_word_embeddings": false,
			},
		},
		Names: &hfNames, Keys: &windowedHFKeys, pairs: &halves, Only: []only{hfQuantized, hfSiLU},
		ropeKeys: []string{hfQueryGrowth, hfContext, hfOriginal},
	},
}

var (
	mistral3RopeKeys = []string{ggufBetaFast, ggufBetaSlow, ggufLogMultiplier, ggufTemperature}
	mistral3Keys     = func() keys {
		k := ggufKeys
		k.rotations = slices.Concat(k.rotations, mistral3RopeKeys)
		return k
	}()
)

// windowedHFKeys is a copy of hfKeys with one more key: the size of the sliding window, which is the same in
// all layers.
var windowedHFKeys = func() keys {
	k := hfKeys
	k.window = "sliding_window"
	return k
}()
