package arch

import "gpuscope/ops/basic"

// hunyuan is the architecture of the dense models of Tencent's Hunyuan V1 (2025). The queries and keys of
// each head are normalized after RoPE. The base of RoPE grows with a number called alpha. GGUF files state
// the resulting base.
var hunyuan = Architecture{
	Name:      "hunyuan-dense",
	Gate:      gated{"silu_mul", basic.SiLUMul},
	HeadNorms: true, normsAfterRope: true,
	Gguf: Spelling{
		Class: ggufClass("hunyuan-dense", nil),
		Names: &ggufNames, Keys: &ggufKeys, pairs: &halves, Only: ggufOnly, storedBiases: true,
	},
	Hf: Spelling{
		Called: []string{"hunyuan_v1_dense"},
		Class: class{
			Name: "HunYuanDenseV1Config",
			Defaults: map[string]any{
				"hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
				"num_attention_heads": 32, "max_position_embeddings": 2048, "rms_norm_eps": 1e-5,
				"rope_theta": 1e4, "tie_word_embeddings": false, "attention_bias": false,
			},
			inert: []string{"pretraining_tp", "eod_token_id"},
		},
		Names: &hunyuanHFNames, Keys: &biasedHFKeys, pairs: &halves,
		Only:     []only{hfQuantized, hfSiLU},
		scalings: map[string]string{"dynamic": alphaScaling},
	},
}

var hunyuanHFNames = func() names {
	n := hfNames
	n.QNorm, n.KNorm = "self_attn.query_layernorm.weight", "self_attn.key_layernorm.weight"
	return n
}()
