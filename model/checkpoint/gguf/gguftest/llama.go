package gguftest

import (
	"fmt"

	"gpuscope/model/checkpoint/gguf"
)

// Shape holds the sizes of a Llama-like model.
type Shape struct{ Layers, Dim, Heads, KVHeads, HeadDim, FFN, Vocab int }

// The shapes of Llama 3.2 1B, Llama 3.1 8B and Llama 3.1 70B.
var (
	Llama1B  = Shape{Layers: 16, Dim: 2048, Heads: 32, KVHeads: 8, HeadDim: 64, FFN: 8192, Vocab: 128256}
	Llama8B  = Shape{Layers: 32, Dim: 4096, Heads: 32, KVHeads: 8, HeadDim: 128, FFN: 14336, Vocab: 128256}
	Llama70B = Shape{Layers: 80, Dim: 8192, Heads: 64, KVHeads: 8, HeadDim: 128, FFN: 28672, Vocab: 128256}
)

// HollowLlama returns a Llama model with Q4_0 matrices but without weight data and without a vocabulary.
// Write it with WriteSparse.
func HollowLlama(s Shape) *Builder {
	b := hollow("llama", s)
	b.Set("llama.rope.dimension_count", s.HeadDim)
	return b
}

// HollowGemma3 returns a Gemma 3 model with Q4_0 matrices but without weight data and without a vocabulary.
// Write it with WriteSparse.
func HollowGemma3(s Shape) *Builder {
	b := hollow("gemma3", s)
	b.Set("gemma3.attention.key_length", s.HeadDim)
	b.Set("gemma3.attention.value_length", s.HeadDim)
	b.Set("gemma3.attention.sliding_window", 512)
	for layer := range s.Layers {
		blk := fmt.Sprintf("blk.%d.", layer)
		b.Hollow(blk+"attn_q_norm.weight", gguf.F32, []int{s.HeadDim})
		b.Hollow(blk+"attn_k_norm.weight", gguf.F32, []int{s.HeadDim})
		b.Hollow(blk+"post_attention_norm.weight", gguf.F32, []int{s.Dim})
		b.Hollow(blk+"post_ffw_norm.weight", gguf.F32, []int{s.Dim})
	}
	return b
}

func hollow(architecture string, s Shape) *Builder {
	b := New()
	b.Set("general.architecture", architecture)
	b.Set("general.name", "hollow")
	for _, p := range []pair{
		{"block_count", s.Layers},
		{"context_length", 131072},
		{"embedding_length", s.Dim},
		{"feed_forward_length", s.FFN},
		{"attention.head_count", s.Heads},
		{"attention.head_count_kv", s.KVHeads},
		{"attention.layer_norm_rms_epsilon", float32(1e-5)},
		{"rope.freq_base", float32(500000)},
		{"vocab_size", s.Vocab},
	} {
		b.Set(architecture+"."+p.key, p.value)
	}
	matrix := func(name string, rows, cols int) { b.Hollow(name, gguf.Q4_0, []int{rows, cols}) }
	vector := func(name string) { b.Hollow(name, gguf.F32, []int{s.Dim}) }
	matrix("token_embd.weight", s.Vocab, s.Dim)
	vector("output_norm.weight")
	for layer := range s.Layers {
		blk := fmt.Sprintf("blk.%d.", layer)
		vector(blk + "attn_norm.weight")
		matrix(blk+"attn_q.weight", s.Heads*s.HeadDim, s.Dim)
		matrix(blk+"attn_k.weight", s.KVHeads*s.HeadDim, s.Dim)
		matrix(blk+"attn_v.weight", s.KVHeads*s.HeadDim, s.Dim)
		matrix(blk+"attn_output.weight", s.Dim, s.Heads*s.HeadDim)
		vector(blk + "ffn_norm.weight")
		matrix(blk+"ffn_gate.weight", s.FFN, s.Dim)
		matrix(blk+"ffn_up.weight", s.FFN, s.Dim)
		matrix(blk+"ffn_down.weight", s.Dim, s.FFN)
	}
	return b
}
