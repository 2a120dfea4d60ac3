package arch

import (
	"slices"

	"gpuscope/ops/basic"
)

// glm4 is the architecture of Z.ai's GLM-4-0414 (2025). Attention and MLP each have a norm before and after
// them. Gate and up are one matrix. RoPE rotates pairs of neighbouring dims in the first half of each
// head.
var glm4 = Architecture{
	Name:      "glm4",
	Gate:      gated{"silu_mul", basic.SiLUMul},
	PostNorms: true, FusedMLP: true,
	Gguf: Spelling{
		Class: ggufClass("glm4", nil),
		Names: &ggufNames, Keys: &ggufKeys, pairs: &partOfNeighbours, storedBiases: true,
		Only: append(slices.Clone(ggufOnly), only{"rope.dimension_sections", nil, "RoPE with sections for images"}),
	},
	Hf: Spelling{
		Class: class{
			Name: "Glm4Config",
			Defaults: map[string]any{
				"hidden_size": 4096, "intermediate_size": 13696, "num_hidden_layers": 40,
				"num_attention_heads": 32, "num_key_value_heads": 2, "head_dim": 128,
				"max_position_embeddings": 131072, "rms_norm_eps": 0.00000015625, "rope_theta": 1e4,
				"partial_rotary_factor": 0.5, "tie_word_embeddings": false, "attention_bias": true,
			},
		},
		Names: &glmHFNames, Keys: &glmHFKeys, pairs: &partOfNeighbours, Only: []only{hfQuantized, hfSiLU},
	},
}

var (
	glmHFNames = func() names {
		n := hfNames
		n.AttnPostNorm, n.FfnPostNorm = "post_self_attn_layernorm.weight", "post_mlp_layernorm.weight"
		return n
	}()
	glmHFKeys = func() keys {
		k := hfKeys
		k.biases, k.turned = "attention_bias", hfPart
		return k
	}()
)
