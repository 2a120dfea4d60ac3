package model

import (
	"slices"

	"gpuscope/ops"
)

// qwen2 is Yang et al., Qwen2 (2024): a Llama with biases of queries, keys and values.
var qwen2 = architecture{
	name:   "qwen2",
	gate:   gated{"silu_mul", ops.SiLUMul},
	biases: true,
	gguf:   spelling{names: &ggufNames, keys: &qwenKeys, pairs: &halves, only: qwenOnly},
	hf:     qwenHF,
}

// qwen3 is Yang et al., Qwen3 (2025): no biases; queries and keys are normalised head by head.
var qwen3 = architecture{
	name:      "qwen3",
	gate:      gated{"silu_mul", ops.SiLUMul},
	headNorms: true,
	gguf:      spelling{names: &ggufNames, keys: &qwenKeys, pairs: &halves, only: qwenOnly},
	hf:        qwenHF,
}

// qwenHF is how folders of Qwen are: they state a window, and beside it that it is not used.
var qwenHF = func() spelling {
	k := hfKeys
	k.window = ""
	return spelling{
		names: &hfNames, keys: &k, pairs: &halves,
		only: append(slices.Clip(hfOnly), only{"use_sliding_window", false, "attention in a sliding window"}),
	}
}()

// GGUF files of Qwen do not say which layers have a window.
var (
	qwenKeys = func() keys {
		k := ggufKeys
		k.window = ""
		return k
	}()
	qwenOnly = append(slices.Clip(ggufOnly), only{"attention.sliding_window", 0, "attention in a sliding window"})
)
