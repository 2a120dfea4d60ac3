package arch

import (
	"math"
	"slices"

	"gpuscope/ops/basic"
)

// Gemma3 is the architecture of: Gemma team, Gemma 3 Technical Report (2025). Five of every six layers have a
// sliding window and a separate RoPE base. Attention and MLP each have a norm before and after them, and the
// queries and keys of each head are normalized too. In Hugging Face folders the stored weights of a norm are
// the weights minus 1. GGUF files store the weights themselves.
var Gemma3 = Architecture{
	Name:      "gemma3",
	Gate:      gated{"gelu_mul", basic.GELUMul},
	HeadNorms: true, PostNorms: true, scaledEmbedding: true,
	Gguf: Spelling{
		Class: ggufClass("gemma3", map[string]any{
			"attention.sliding_window_pattern": 6, "rope.freq_base_swa": 1e4,
		}),
		Names: &ggufNames, Keys: &gemmaKeys, pairs: &halves,
		Only: append(slices.Clip(ggufOnly), only{"final_logit_softcapping", 0.0, "soft capping of logits"}),
		implied: func(c *Config) {
			// The 27B model divides the attention scores by sqrt(dim / heads); all others divide them by
			// sqrt(head size). Only the 27B model has 62 layers.
			if c.Layers == 62 {
				c.Scale = 1 / math.Sqrt(float64(c.Dim)/float64(c.Heads))
			}
		},
	},
	Hf: Spelling{
		Called: []string{"gemma3_text"},
		Class: class{
			Name: "Gemma3TextConfig",
			Defaults: map[string]any{
				"hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26,
				"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256,
				"max_position_embeddings": 131072, "rms_norm_eps": 1e-6, "rope_theta": 1e6,
				"rope_local_base_freq": 1e4, "query_pre_attn_scalar": 256.0, "sliding_window": 4096,
				"sliding_window_pattern": 6, "tie_word_embeddings": true,
			},
			inert: []string{"cache_implementation", "_sliding_window_pattern"},
		},
		Names: &gemmaHFNames, Keys: &gemmaHFKeys, pairs: &halves, onePlus: true,
		Only: []only{
			hfQuantized, hfAttentionBias,
			{"hidden_activation", "gelu_pytorch_tanh", "another activation"},
			{"attn_logit_softcapping", nil, "soft capping of attention scores"},
			{"final_logit_softcapping", nil, "soft capping of logits"},
			{"use_bidirectional_attention", false, "bidirectional attention"},
		},
		// The file states a number whose square root divides the attention scores. c.Scale is this number
		// until `implied` is called.
		implied: func(c *Config) { c.Scale = 1 / math.Sqrt(c.Scale) },
	},
}

// gemma2 is the architecture of: Gemma team, Gemma 2 (2024). Every second layer has a sliding window, and all
// layers have the same rotation. Attention scores and logits have soft caps. Attention and MLP each have a
// norm before and after them.
var gemma2 = Architecture{
	Name:      "gemma2",
	Gate:      gated{"gelu_mul", basic.GELUMul},
	PostNorms: true, scaledEmbedding: true,
	Gguf: Spelling{
		Class: ggufClass("gemma2", map[string]any{
			"attention.sliding_window": 4096, "attention.sliding_window_pattern": 2,
			"attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0,
		}),
		Names: &ggufNames, Keys: &gemma2Keys, pairs: &halves, Only: ggufOnly,
		implied: func(c *Config) {
			// Only the 27B model has 46 layers; see Gemma3.
			if c.Layers == 46 {
				c.Scale = 1 / math.Sqrt(float64(c.Dim)/float64(c.Heads))
			}
		},
	},
	Hf: Spelling{
		Class: class{
			Name: "Gemma2Config",
			Defaults: map[string]any{
				"hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26,
				"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256,
				"max_position_embeddings": 8192, "rms_norm_eps": 1e-6, "rope_theta": 1e4,
				"query_pre_attn_scalar": 256.0, "sliding_window": 4096, "attn_logit_softcapping": 50.0,
				"final_logit_softcapping": 30.0, "tie_word_embeddings": true,
			},
			inert: []string{"cache_implementation"},
		},
		Names: &gemmaHFNames, Keys: &gemma2HFKeys, pairs: &halves, onePlus: true, fullEach: 2,
		Only: []only{
			hfQuantized, hfAttentionBias,
			{"hidden_activation", "gelu_pytorch_tanh", "another activation"},
			{"use_bidirectional_attention", false, "bidirectional attention"},
		},
		implied: func(c *Config) { c.Scale = 1 / math.Sqrt(c.Scale) },
	},
}

var (
	gemma2Keys = func() keys {
		k := ggufKeys
		k.window, k.fullEach = "attention.sliding_window", "attention.sliding_window_pattern"
		k.scoreCap, k.logitCap = "attn_logit_softcapping", "final_logit_softcapping"
		return k
	}()
	gemma2HFKeys = func() keys {
		k := windowedHFKeys
		k.kinds, k.scale = hfKinds, "query_pre_attn_scalar"
		k.scoreCap, k.logitCap = "attn_logit_softcapping", "final_logit_softcapping"
		return k
	}()
)

var (
	gemmaHFNames = func() names {
		n := hfNames
		n.AttnPostNorm, n.FfnNorm = n.FfnNorm, "pre_feedforward_layernorm.weight"
		n.FfnPostNorm = "post_feedforward_layernorm.weight"
		n.LayerScale = "layer_scalar"
		n.InputEmbed = "model.embed_tokens_per_layer.weight"
		n.InputFromEmbed = "model.per_layer_model_projection.weight"
		n.InputNorm = "model.per_layer_projection_norm.weight"
		n.InputGate, n.InputProj = "per_layer_input_gate.weight", "per_layer_projection.weight"
		n.InputPostNorm = "post_per_layer_input_norm.weight"
		n.Router, n.RouterScale = "router.proj.weight", "router.scale"
		n.ExpertFactors = "router.per_expert_scale"
		n.ExpertGateUp, n.ExpertDowns = "experts.gate_up_proj", "experts.down_proj"
		n.MlpPostNorm = "post_feedforward_layernorm_1.weight"
		n.ExpertNorm = "pre_feedforward_layernorm_2.weight"
		n.ExpertPostNorm = "post_feedforward_layernorm_2.weight"
		return n
	}()
	gemmaHFKeys = func() keys {
		k := windowedHFKeys
		k.fullEach, k.kinds, k.localBase = "sliding_window_pattern", hfKinds, "rope_local_base_freq"
		k.scale = "query_pre_attn_scalar"
		return k
	}()
	gemmaKeys = func() keys {
		k := ggufKeys
		k.window, k.fullEach = "attention.sliding_window", "attention.sliding_window_pattern"
		k.localBase = "rope.freq_base_swa"
		return k
	}()
)

// gemma4 is the architecture of Google's Gemma 4 (2026). It is a Gemma 3 with the following differences.
// Layers with full attention have wider heads and fewer key and value heads, rotate only some pairs of dims,
// and may use their keys as values. The values of each head are normalized. The last layers may read the keys
// and values of earlier layers. Each layer may have an input of its own, or a mixture of experts in parallel
// with its MLP. Attention scores have no scale, and logits have a soft cap.
var gemma4 = Architecture{
	Name:      "gemma4",
	Gate:      gated{"gelu_mul", basic.GELUMul},
	HeadNorms: true, PostNorms: true, scaledEmbedding: true, valueNorms: true, keysAsValues: true,
	LayerScales: true, expertsBeside: true, normalized: true,
	Gguf: Spelling{
		Class: ggufClass("gemma4", map[string]any{"rope.freq_base_swa": 1e4}),
		Names: &ggufNames, Keys: &gemma4Keys, pairs: &halves, Only: mixtureOnly, implied: unscaled,
		listed: true,
	},
	Hf: Spelling{
		Called: []string{"gemma4_text"},
		Class: class{
			Name: "Gemma4TextConfig", Defaults: map[string]any{"tie_word_embeddings": true},
			// The reader needs neither of these two settings, because their values follow from the tensors
			// of the file.
			inert: []string{"attention_k_eq_v", "vocab_size_per_layer_input"},
		},
		Names: &gemmaHFNames, Keys: &gemma4HFKeys, pairs: &halves, implied: unscaled, listed: true,
		Only: []only{
			hfQuantized, hfAttentionBias,
			{"hidden_activation", "gelu_pytorch_tanh", "another activation"},
			{"use_bidirectional_attention", orNull("vision"), "bidirectional attention"},
		},
	},
}

// unscaled sets the scale of the attention scores to 1.
func unscaled(c *Config) { c.Scale = 1 }

var (
	gemma4Keys = func() keys {
		k := withExperts(gemmaKeys)
		k.localHeadDim, k.sameLocalDim = "attention.key_length_swa", []string{"attention.value_length_swa"}
		k.unequal = true
		k.localTurned, k.sharedKV = "rope.dimension_count_swa", "attention.shared_kv_layers"
		k.layerInput, k.logitCap = "embedding_length_per_layer_input", "final_logit_softcapping"
		return k
	}()
	gemma4HFKeys = func() keys {
		k := windowedHFKeys
		k.kinds, k.localBase = hfKinds, localRotation+"."+ropeBase
		k.fullHeadDim, k.fullKVHeads = "global_head_dim", "num_global_key_value_heads"
		k.byLayer, k.sharedKV, k.sharedWide = "per_layer_config", "num_kv_shared_layers", "use_double_wide_mlp"
		k.layerInput, k.logitCap = "hidden_size_per_layer_input", "final_logit_softcapping"
		k.mixed, k.experts, k.chosen = "enable_moe_block", "num_experts", "top_k_experts"
		k.expertFfn = "moe_intermediate_size"
		return k
	}()
)
