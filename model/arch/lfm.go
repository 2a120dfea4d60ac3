package arch

import (
	"gpuscope/ops/basic"
)

// lfm2 is the architecture of Liquid AI's LFM2 (2025). Most layers have a short convolution between two gates
// instead of attention. The queries and keys of each head are normalized.
var lfm2 = Architecture{
	Name:      "lfm2",
	Gate:      gated{"silu_mul", basic.SiLUMul},
	HeadNorms: true,
	recurrent: newShortConv,
	stateSize: func(c *Config) int64 { return int64(c.ConvTaps-1) * int64(c.Dim) },
	Gguf: Spelling{
		Class: ggufClass("lfm2", nil),
		Names: &lfmNames, Keys: &lfmKeys, pairs: &halves, Only: ggufOnly,
		recurrent: func(r *configReader, c *Config) {
			c.ConvTaps = r.int("shortconv.l_cache", 2, mostTaps)
			list, err := r.f.Ints(r.prefix + r.form.Keys.kvHeads)
			if r.fail(err); err != nil {
				return
			}
			c.Recurrent = make([]bool, c.Layers)
			for i := range list {
				c.Recurrent[i] = list[i] == 0
			}
		},
	},
	Hf: Spelling{
		Class: class{
			Name: "Lfm2Config",
			Defaults: map[string]any{
				"hidden_size": 2560, "intermediate_size": 12288, "num_hidden_layers": 32,
				"num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 128000,
				"norm_eps": 1e-5, "rope_theta": 1e6, "tie_word_embeddings": true, "conv_bias": false,
				"conv_L_cache": 3, "block_multiple_of": 256, "block_ffn_dim_multiplier": 1.0,
				"block_auto_adjust_ff_dim": true,
			},
			inert: []string{
				"full_attn_idxs", "block_dim", "block_mlp_init_scale", "block_norm_eps", "block_out_init_scale",
				"block_use_swiglu", "block_use_xavier_init", "conv_dim", "conv_dim_out", "conv_use_xavier_init",
				"num_heads", "use_pos_enc", "theta", "block_ff_dim",
			},
		},
		Names: &lfmHFNames, Keys: &lfmHFKeys, pairs: &halves,
		recurrentKind: "conv",
		Only:          []only{hfQuantized, {"conv_bias", false, "biases in the convolution layers"}},
		recurrent: func(r *configReader, c *Config) {
			c.ConvTaps = r.int("conv_L_cache", 2, mostTaps)
			c.Recurrent = r.recurrentLayers(1)
			if r.bool("block_auto_adjust_ff_dim") {
				factor := r.float("block_ffn_dim_multiplier", 1e-3, 1e3)
				each := r.int("block_multiple_of", 1, MaxDim)
				for i, n := range c.FFN {
					size := int(factor * float64(2*n/3))
					c.FFN[i] = (size + each - 1) / each * each
				}
			}
		},
	},
}

// mostTaps is the maximum number of weights per channel of a short convolution.
const mostTaps = 64

var (
	lfmNames = func() names {
		n := ggufNames
		n.Norm = "token_embd_norm.weight"
		n.convIn, n.convTaps = "shortconv.in_proj.weight", "shortconv.conv.weight"
		n.convOut = "shortconv.out_proj.weight"
		return n
	}()
	lfmKeys = func() keys {
		k := ggufKeys
		k.recurrent, k.zeroKV = []string{"shortconv.l_cache"}, true
		return k
	}()
	lfmHFNames = func() names {
		n := hfNames
		n.Norm, n.AttnNorm, n.FfnNorm = "model.embedding_norm.weight", "operator_norm.weight", "ffn_norm.weight"
		n.Gate, n.Up, n.Down = "feed_forward.w1.weight", "feed_forward.w3.weight", "feed_forward.w2.weight"
		n.QNorm, n.KNorm = "self_attn.q_layernorm.weight", "self_attn.k_layernorm.weight"
		n.O = "self_attn.out_proj.weight"
		n.convIn, n.convTaps, n.convOut = "conv.in_proj.weight", "conv.conv.weight", "conv.out_proj.weight"
		return n
	}()
	lfmHFKeys = func() keys {
		k := hfKeys
		k.Eps, k.kinds = "norm_eps", hfKinds
		k.recurrent = []string{
			"conv_L_cache", "block_auto_adjust_ff_dim", "block_ffn_dim_multiplier", "block_multiple_of",
		}
		return k
	}()
)
