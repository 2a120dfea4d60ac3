package arch

import "gpuscope/ops/basic"

// granite is the architecture of the dense models of IBM's Granite 3 and 4. It is a Llama with factors for
// the rows of the embedding, for the outputs of attention and MLP, and for the attention scores. The logits
// are divided by another factor.
var granite = Architecture{
	Name: "granite",
	Gate: gated{"silu_mul", basic.SiLUMul},
	Gguf: Spelling{
		Class: ggufClass("granite", nil),
		Names: &ggufNames, Keys: &graniteKeys, pairs: &neighbours, storedBiases: true,
		Only:    append(ggufOnly[:len(ggufOnly):len(ggufOnly)], only{"rope.scaling.finetuned", true, "no RoPE in any layer"}),
		implied: invertLogitScale,
	},
	Hf: Spelling{
		Class: class{
			Name: "GraniteConfig",
			Defaults: map[string]any{
				"hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
				"num_attention_heads": 32, "max_position_embeddings": 2048, "rms_norm_eps": 1e-6,
				"rope_theta": 1e4, "tie_word_embeddings": false, "attention_bias": false,
				"embedding_multiplier": 1.0, "residual_multiplier": 1.0, "attention_multiplier": 1.0,
				"logits_scaling": 1.0,
			},
		},
		Names: &hfNames, Keys: &graniteHFKeys, pairs: &halves, Only: []only{hfQuantized, hfSiLU, hfMLPBias},
		implied: invertLogitScale,
	},
}

// graniteMoE is the architecture of the mixtures of experts of Granite 3. It is a granite with experts.
var graniteMoE = Architecture{
	Name:    "granitemoe",
	Gate:    gated{"silu_mul", basic.SiLUMul},
	Experts: true, normalized: true,
	Gguf: Spelling{
		Class: ggufClass("granitemoe", nil),
		Names: &ggufNames, Keys: &graniteMoEKeys, pairs: &neighbours, storedBiases: true,
		Only: append(mixtureOnly[:len(mixtureOnly):len(mixtureOnly)],
			only{"rope.scaling.finetuned", true, "no RoPE in any layer"}),
		implied: invertLogitScale,
	},
	Hf: Spelling{
		Class: class{
			Name: "GraniteMoeConfig",
			Defaults: map[string]any{
				"hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
				"num_attention_heads": 32, "max_position_embeddings": 2048, "rms_norm_eps": 1e-6,
				"rope_theta": 1e4, "tie_word_embeddings": false, "attention_bias": false,
				"embedding_multiplier": 1.0, "residual_multiplier": 1.0, "attention_multiplier": 1.0,
				"logits_scaling": 1.0, "num_local_experts": 8, "num_experts_per_tok": 2,
			},
			inert: hfRouterInert,
		},
		Names: &graniteMoEHFNames, Keys: &graniteMoEHFKeys, pairs: &halves, Only: []only{hfQuantized, hfSiLU},
		implied: invertLogitScale,
	},
}

// invertLogitScale replaces c.LogitScale by its inverse, for files that state a divisor of the logits.
func invertLogitScale(c *Config) {
	if c.LogitScale != 0 {
		c.LogitScale = 1 / c.LogitScale
	}
}

var (
	graniteKeys = func() keys {
		k := ggufKeys
		k.embedScale, k.residualScale = "embedding_scale", "residual_scale"
		k.scale, k.logitScale = "attention.scale", "logit_scale"
		return k
	}()
	graniteMoEKeys    = withExperts(graniteKeys)
	graniteMoEHFNames = func() names {
		n := hfNames
		n.Router = "block_sparse_moe.router.layer.weight"
		n.ExpertGateUp = "block_sparse_moe.input_linear.weight"
		n.ExpertDowns = "block_sparse_moe.output_linear.weight"
		return n
	}()
	graniteMoEHFKeys = func() keys {
		k := graniteHFKeys
		k.experts, k.chosen = "num_local_experts", "num_experts_per_tok"
		return k
	}()
	graniteHFKeys = func() keys {
		k := biasedHFKeys
		k.embedScale, k.residualScale = "embedding_multiplier", "residual_multiplier"
		k.scale, k.logitScale = "attention_multiplier", "logits_scaling"
		return k
	}()
)

// biasedHFKeys is a copy of hfKeys plus the key attention_bias, which states whether the four projections of
// attention have biases.
var biasedHFKeys = func() keys {
	k := hfKeys
	k.biases, k.outBias = "attention_bias", "attention_bias"
	return k
}()
