package arch

import (
	"gpuscope/ops/basic"
)

// qwen35 is the architecture of Qwen3.5 (2026), and of the language model inside Qwen3.5 models that also
// read images. Three of every four layers have linear attention with a gated delta rule. The fourth has gated
// attention, in which the queries and keys of each head are normalized and RoPE rotates a part of each head.
var qwen35 = Architecture{
	Name:      "qwen35",
	Gate:      gated{"silu_mul", basic.SiLUMul},
	HeadNorms: true, gatedAttention: true,
	recurrent: newDeltaNet, stateSize: deltaStateSize,
	Gguf: Spelling{
		Class: ggufClass("qwen35", map[string]any{"full_attention_interval": 4}),
		Names: &qwen35Names, Keys: &qwen35Keys, pairs: &halves, Only: ggufOnly, tiledHeads: true,
		recurrent: ggufDeltaLayers,
	},
	Hf: Spelling{
		Called: []string{"qwen3_5_text"},
		Class:  class{Name: "Qwen3_5TextConfig", Defaults: qwen35Defaults},
		Names:  &qwen35HFNames, Keys: &qwen35HFKeys, pairs: &halves, onePlus: true, logDecay: true,
		Only:      []only{hfQuantized, hfSiLU, hfAttentionBias},
		ropeKeys:  []string{"mrope_section", "mrope_interleaved"},
		recurrent: hfDeltaLayers, recurrentKind: "linear_attention",
	},
}

// deltaStateSize returns the number of elements of a layer's recurrent state: the state of its convolution
// and the states of its heads.
func deltaStateSize(c *Config) int64 {
	d := &c.Delta
	return int64(c.ConvTaps-1)*int64(d.width()) + int64(d.values)*int64(d.keyDim)*int64(d.valueDim)
}

// ggufDeltaLayers reads the sizes of linear attention from a GGUF file.
func ggufDeltaLayers(r *configReader, c *Config) {
	c.ConvTaps = r.int("ssm.conv_kernel", 2, mostTaps)
	c.Delta = deltaHeads{
		keys: r.int("ssm.group_count", 1, MaxDim), values: r.int("ssm.time_step_rank", 1, MaxDim),
		keyDim: r.int("ssm.state_size", 4, MaxDim),
	}
	inner := r.int("ssm.inner_size", 1, MaxDim)
	if r.err != nil {
		return
	}
	if inner%c.Delta.values != 0 {
		r.errorf("ssm.inner_size", "the value %d is not a multiple of the number of value heads, %d", inner,
			c.Delta.values)
	}
	c.Delta.valueDim = max(inner/c.Delta.values, 1)
	checkDelta(r, "ssm.time_step_rank", c)
	if r.has("attention.recurrent_layers") {
		list, err := r.f.Bools(r.prefix + "attention.recurrent_layers")
		if r.fail(err); err == nil && r.eachLayer("attention.recurrent_layers", len(list)) {
			c.Recurrent = list
			return
		}
	}
	c.Recurrent = r.recurrentLayers(r.int("full_attention_interval", 1, maxLayers))
}

// hfDeltaLayers reads the sizes of linear attention from a config.json.
func hfDeltaLayers(r *configReader, c *Config) {
	c.ConvTaps = r.int("linear_conv_kernel_dim", 2, mostTaps)
	c.Delta = deltaHeads{
		keys: r.int("linear_num_key_heads", 1, MaxDim), values: r.int("linear_num_value_heads", 1, MaxDim),
		keyDim: r.int("linear_key_head_dim", 4, MaxDim), valueDim: r.int("linear_value_head_dim", 1, MaxDim),
	}
	if r.err != nil {
		return
	}
	checkDelta(r, "linear_num_value_heads", c)
	c.Recurrent = r.recurrentLayers(r.int("full_attention_interval", 1, maxLayers))
}

// checkDelta records an error if the sizes of linear attention are inconsistent or unsupported.
func checkDelta(r *configReader, key string, c *Config) {
	d := &c.Delta
	switch {
	case d.values%d.keys != 0:
		r.errorf(key, "the number of value heads, %d, is not a multiple of the number of key heads, %d",
			d.values, d.keys)
	case d.keyDim%4 != 0:
		r.errorf(key, "not supported yet: keys of %d elements; want a multiple of 4", d.keyDim)
	}
}

var (
	qwen35Defaults = map[string]any{
		"hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 32,
		"num_attention_heads": 16, "num_key_value_heads": 4, "max_position_embeddings": 32768,
		"rms_norm_eps": 1e-6, "rope_theta": 1e4, "tie_word_embeddings": false, "head_dim": 256,
		"linear_conv_kernel_dim": 4, "linear_key_head_dim": 128, "linear_value_head_dim": 128,
		"linear_num_key_heads": 16, "linear_num_value_heads": 32, "full_attention_interval": 4,
		"partial_rotary_factor": 0.25,
	}
	qwen35Names = func() names {
		n := ggufNames
		n.FfnNorm, n.convTaps = "post_attention_norm.weight", "ssm_conv1d.weight"
		n.deltaQKV, n.deltaZ = "attn_qkv.weight", "attn_gate.weight"
		n.deltaAlpha, n.deltaBeta = "ssm_alpha.weight", "ssm_beta.weight"
		n.deltaA, n.deltaDT = "ssm_a", "ssm_dt.bias"
		n.deltaNorm, n.deltaOut = "ssm_norm.weight", "ssm_out.weight"
		return n
	}()
	qwen35Keys = func() keys {
		k := ggufKeys
		k.recurrent = []string{
			"ssm.conv_kernel", "ssm.group_count", "ssm.time_step_rank", "ssm.state_size", "ssm.inner_size",
			"full_attention_interval", "attention.recurrent_layers",
		}
		k.inert = append([]string{"rope.dimension_sections"}, k.inert...)
		return k
	}()
	qwen35HFNames = func() names {
		n := hfNames
		n.convTaps = "linear_attn.conv1d.weight"
		n.deltaQKV, n.deltaZ = "linear_attn.in_proj_qkv.weight", "linear_attn.in_proj_z.weight"
		n.deltaAlpha, n.deltaBeta = "linear_attn.in_proj_a.weight", "linear_attn.in_proj_b.weight"
		n.deltaA, n.deltaDT = "linear_attn.A_log", "linear_attn.dt_bias"
		n.deltaNorm, n.deltaOut = "linear_attn.norm.weight", "linear_attn.out_proj.weight"
		return n
	}()
	qwen35HFKeys = func() keys {
		k := hfKeys
		k.kinds, k.turned = hfKinds, hfPart
		k.recurrent = []string{
			"linear_conv_kernel_dim", "linear_num_key_heads", "linear_num_value_heads", "linear_key_head_dim",
			"linear_value_head_dim", "full_attention_interval",
		}
		return k
	}()
)
