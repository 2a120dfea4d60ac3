package arch

import (
	"maps"

	"gpuscope/ops/basic"
)

// qwen35MoE is the architecture of the mixtures of experts of Qwen3.5 (2026), such as 35B-A3B. It is a
// Qwen3.5 with a mixture of experts instead of each MLP, plus a shared expert that processes every token.
var qwen35MoE = Architecture{
	Name:      "qwen35moe",
	Gate:      gated{"silu_mul", basic.SiLUMul},
	HeadNorms: true, gatedAttention: true, Experts: true, normalized: true, sharedExpert: true,
	recurrent: newDeltaNet, stateSize: deltaStateSize,
	Gguf: Spelling{
		Class: class{
			Name: "llama.cpp's qwen35moe", Defaults: qwen35.Gguf.Class.Defaults,
			inert: []string{"feed_forward_length"}, // for layers without experts: there are none
		},
		Names: &qwen35Names, Keys: &qwen35MoEKeys, pairs: &halves, tiledHeads: true,
		Only: []only{
			{"attention.causal", true, "bidirectional attention"},
			{"expert_shared_count", 1, "more than one shared expert"},
		},
		recurrent: ggufDeltaLayers,
	},
	Hf: Spelling{
		Called: []string{"qwen3_5_moe_text"},
		Class: class{
			Name: "Qwen3_5MoeTextConfig",
			Defaults: with(maps.Clone(qwen35Defaults), map[string]any{
				"hidden_size": 2048, "num_hidden_layers": 40, "num_key_value_heads": 2,
				"moe_intermediate_size": 512, "shared_expert_intermediate_size": 512, "num_experts": 256,
				"num_experts_per_tok": 8,
			}),
			inert: hfRouterInert,
		},
		Names: &qwen35HFNames, Keys: &qwen35MoEHFKeys, pairs: &halves, onePlus: true, logDecay: true,
		Only: qwen35.Hf.Only, ropeKeys: qwen35.Hf.ropeKeys, recurrent: hfDeltaLayers,
		recurrentKind: qwen35.Hf.recurrentKind,
	},
}

var (
	qwen35MoEKeys = func() keys {
		k := withExperts(qwen35Keys)
		k.Ffn, k.sharedFfn = k.expertFfn, "expert_shared_feed_forward_length"
		return k
	}()
	qwen35MoEHFKeys = func() keys {
		k := qwen35HFKeys
		k.experts, k.chosen, k.expertFfn = "num_experts", "num_experts_per_tok", "moe_intermediate_size"
		k.Ffn, k.sharedFfn = k.expertFfn, "shared_expert_intermediate_size"
		return k
	}()
)
