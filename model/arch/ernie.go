package arch

import "gpuscope/ops/basic"

// ernie45 is the architecture of the dense models of Baidu's ERNIE 4.5 (2025). It is a Llama whose RoPE
// rotates pairs of neighbouring dims, both in GGUF files and in Hugging Face folders.
var ernie45 = Architecture{
	Name: "ernie4_5",
	Gate: gated{"silu_mul", basic.SiLUMul},
	Gguf: Spelling{
		Class: ggufClass("ernie4_5", nil),
		Names: &ggufNames, Keys: &ggufKeys, pairs: &neighbours, Only: ggufOnly, storedBiases: true,
	},
	Hf: Spelling{
		Class: class{
			Name: "Ernie4_5Config",
			Defaults: map[string]any{
				"hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 18,
				"num_attention_heads": 16, "num_key_value_heads": 2, "head_dim": 128,
				"max_position_embeddings": 131072, "rms_norm_eps": 1e-5, "rope_theta": 5e5,
				"tie_word_embeddings": true,
			},
			inert: []string{"compression_ratio", "hidden_dropout_prob"},
		},
		Names: &hfNames, Keys: &hfKeys, pairs: &neighbours,
		Only: []only{hfQuantized, hfSiLU, {"use_bias", false, "biases"}},
	},
}
