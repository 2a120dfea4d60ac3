package arch

import "gpuscope/ops/basic"

// Phi3 is the architecture of Abdin et al., Phi-3 Technical Report (2024). It is a Llama in which queries,
// keys and values share one matrix, and gate and up share another. Models with a long context divide each
// RoPE frequency by a factor. They have one list of factors for short contexts and another for long contexts
// (Ding et al., LongRoPE, 2024). A sliding window applies to all layers, as in transformers. llama.cpp
// ignores the window.
var Phi3 = Architecture{
	Name:  "phi3",
	Gate:  gated{"silu_mul", basic.SiLUMul},
	Fused: true,
	Gguf: Spelling{
		Class: ggufClass("phi3", nil),
		Names: &ggufNames, Keys: &phiKeys, pairs: &halves, Only: ggufOnly,
	},
	Hf: Spelling{
		Class: class{
			Name: "Phi3Config",
			Defaults: map[string]any{
				"hidden_size": 3072, "intermediate_size": 8192, "num_hidden_layers": 32,
				"num_attention_heads": 32, "max_position_embeddings": 4096,
				hfOriginal: 4096, "rms_norm_eps": 1e-5, "rope_theta": 1e4, "partial_rotary_factor": 1.0,
				"tie_word_embeddings": false,
			},
			inert: []string{"embd_pdrop", "resid_pdrop"},
		},
		Names: &hfNames, Keys: &phiHFKeys, pairs: &halves, Only: []only{hfQuantized, hfSiLU},
		scalings: map[string]string{"yarn": "longrope"}, // the first Phi-3 files say yarn, not longrope
	},
}

var (
	phiKeys = func() keys {
		k := ggufKeys
		k.window = "attention.sliding_window"
		return k
	}()
	phiHFKeys = func() keys {
		k := windowedHFKeys
		k.turned = hfPart
		return k
	}()
)
