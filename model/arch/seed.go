package arch

import "gpuscope/ops/basic"

// seedOSS is the architecture of ByteDance's Seed-OSS (2025). It is a Llama whose query, key and value
// projections usually have biases.
var seedOSS = Architecture{
	Name: "seed_oss",
	Gate: gated{"silu_mul", basic.SiLUMul},
	Gguf: Spelling{
		Class: ggufClass("seed_oss", nil),
		Names: &seedNames, Keys: &ggufKeys, pairs: &halves, Only: ggufOnly, storedBiases: true,
	},
	Hf: Spelling{
		Class: class{
			Name: "SeedOssConfig",
			Defaults: map[string]any{
				"hidden_size": 4096, "intermediate_size": 27648, "num_hidden_layers": 64,
				"num_attention_heads": 80, "num_key_value_heads": 8, "head_dim": 128,
				"max_position_embeddings": 524288, "rms_norm_eps": 1e-6, "rope_theta": 1e4,
				"tie_word_embeddings": false, "attention_bias": true, "attention_out_bias": false,
			},
			inert: []string{"pretraining_tp", "residual_dropout"},
		},
		Names: &hfNames, Keys: &seedHFKeys, pairs: &halves, Only: []only{hfQuantized, hfSiLU, hfMLPBias},
	},
}

var (
	// seedNames are the tensor names of a Llama, except the name of the norm before the MLP.
	seedNames = func() names {
		n := ggufNames
		n.FfnNorm = n.AttnPostNorm
		return n
	}()
	seedHFKeys = func() keys {
		k := hfKeys
		k.biases, k.outBias = "attention_bias", "attention_out_bias"
		return k
	}()
)
