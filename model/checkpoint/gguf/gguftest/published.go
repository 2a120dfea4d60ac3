package gguftest

import (
	"fmt"
	"maps"
	"strings"

	"gpuscope/model/checkpoint/gguf"
)

// Published is the shape of a published model: the sizes in its configuration.
type Published struct {
	Name   string // "qwen3-30b-a3b"
	Doc    string // what is special about the layers
	Layers int    // number of layers of the published model
	build  func(m *shaped)
}

// PublishedShapes lists shapes of published models. Some models have special layers: mixtures of experts,
// layers with a recurrent state, or layers of different sizes. The dense models are for comparison.
var PublishedShapes = []Published{
	{"llama-3.1-8b", "dense", 32, llama8B},
	{"qwen3-30b-a3b", "mixture: 8 of 128 experts", 48, qwen3MoE},
	{"qwen3-a3b-dense", "dense, with as many weights as a token of qwen3-30b-a3b uses", 48, qwen3Dense},
	{"gpt-oss-20b", "mixture: 4 of 32 experts in MXFP4, attention sinks, windows", 24, gptOSS},
	{"qwen3.5-9b", "gated delta rule in 3 of 4 layers", 32, qwen35},
	{"gemma4-12b", "windows in 5 of 6 layers, two head sizes, keys used as values", 48, gemma4},
}

// PublishedShape returns the shape with a name. The error lists all names.
func PublishedShape(name string) (Published, error) {
	var names []string
	for _, p := range PublishedShapes {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return Published{}, fmt.Errorf("unknown model shape %q; known: %s", name, strings.Join(names, ", "))
}

// Hollow returns a model of the shape without weight data and without a vocabulary. Write it with
// WriteSparse or WriteRandom. Matrices have the type `typ`, except those that the published files always
// store in another type. `layers` is the number of layers, or 0 for the number in the published model. If
// the published model repeats a pattern of layers, such as five with a window and one without, `layers` must
// be a multiple of the length of the pattern.
func (p *Published) Hollow(typ gguf.Type, layers int) *Builder {
	if layers == 0 {
		layers = p.Layers
	}
	m := &shaped{Builder: New(), typ: typ, layers: layers}
	m.Set("general.name", "random "+p.Name)
	m.Set("tokenizer.ggml.model", "none")
	p.build(m)
	return m.Builder
}

// shaped builds a model of a published shape.
type shaped struct {
	*Builder
	architecture string
	typ          gguf.Type
	layers       int
	dim          int
}

// begin sets the metadata that all architectures have, and adds the tensors outside of layers.
func (m *shaped) begin(architecture string, dim, vocab int, tied bool, settings map[string]any) {
	m.architecture, m.dim = architecture, dim
	m.Set("general.architecture", architecture)
	m.key("block_count", m.layers)
	m.key("embedding_length", dim)
	m.key("vocab_size", vocab)
	for _, k := range sortedKeys(settings) {
		m.key(k, settings[k])
	}
	m.matrix("token_embd.weight", vocab, dim)
	m.vector("output_norm.weight", dim)
	if !tied {
		m.matrix("output.weight", vocab, dim)
	}
}

func (m *shaped) key(name string, value any) { m.Set(m.architecture+"."+name, value) }

func (m *shaped) matrix(name string, rows, cols int) { m.Hollow(name, m.typ, []int{rows, cols}) }

func (m *shaped) vector(name string, n int) { m.Hollow(name, gguf.F32, []int{n}) }

// attention adds the projections of attention.
func (m *shaped) attention(blk string, q, kv int) {
	m.matrix(blk+"attn_q.weight", q, m.dim)
	m.matrix(blk+"attn_k.weight", kv, m.dim)
	m.matrix(blk+"attn_v.weight", kv, m.dim)
	m.matrix(blk+"attn_output.weight", m.dim, q)
}

// mlp adds a gated MLP.
func (m *shaped) mlp(blk string, ffn int) {
	m.matrix(blk+"ffn_gate.weight", ffn, m.dim)
	m.matrix(blk+"ffn_up.weight", ffn, m.dim)
	m.matrix(blk+"ffn_down.weight", m.dim, ffn)
}

// experts adds a router and the matrices of n experts.
func (m *shaped) experts(blk string, n, ffn int, typ gguf.Type) {
	m.Hollow(blk+"ffn_gate_inp.weight", gguf.F32, []int{n, m.dim})
	m.Hollow(blk+"ffn_gate_exps.weight", typ, []int{n, ffn, m.dim})
	m.Hollow(blk+"ffn_up_exps.weight", typ, []int{n, ffn, m.dim})
	m.Hollow(blk+"ffn_down_exps.weight", typ, []int{n, m.dim, ffn})
}

func (m *shaped) eachLayer(add func(layer int, blk string)) {
	for layer := range m.layers {
		add(layer, fmt.Sprintf("blk.%d.", layer))
	}
}

// llama8B builds the shape of meta-llama/Llama-3.1-8B.
func llama8B(m *shaped) {
	m.begin("llama", 4096, 128256, false, map[string]any{
		"context_length": 131072, "feed_forward_length": 14336, "attention.head_count": 32,
		"attention.head_count_kv": 8, "attention.layer_norm_rms_epsilon": float32(1e-5),
		"rope.freq_base": float32(5e5), "rope.dimension_count": 128,
	})
	m.eachLayer(func(_ int, blk string) {
		m.vector(blk+"attn_norm.weight", m.dim)
		m.attention(blk, 32*128, 8*128)
		m.vector(blk+"ffn_norm.weight", m.dim)
		m.mlp(blk, 14336)
	})
}

// qwen3MoE builds the shape of Qwen/Qwen3-30B-A3B.
func qwen3MoE(m *shaped) {
	m.qwen3("qwen3moe", map[string]any{
		"expert_count": 128, "expert_used_count": 8, "expert_feed_forward_length": 768,
	}, func(blk string) { m.experts(blk, 128, 768, m.typ) })
}

// qwen3Dense builds the same shape as qwen3MoE, but with an MLP that is as wide as the 8 experts of a token
// together.
func qwen3Dense(m *shaped) { m.qwen3("qwen3", nil, func(blk string) { m.mlp(blk, 8*768) }) }

// qwen3 adds the layers of Qwen3-30B-A3B. It calls feedForward to add the feed-forward part of each layer.
func (m *shaped) qwen3(architecture string, settings map[string]any, feedForward func(blk string)) {
	all := map[string]any{
		"context_length": 40960, "feed_forward_length": 6144, "attention.head_count": 32,
		"attention.head_count_kv": 4, "attention.key_length": 128, "attention.value_length": 128,
		"attention.layer_norm_rms_epsilon": float32(1e-6), "rope.freq_base": float32(1e6),
	}
	maps.Copy(all, settings)
	m.begin(architecture, 2048, 151936, false, all)
	m.eachLayer(func(_ int, blk string) {
		m.vector(blk+"attn_norm.weight", m.dim)
		m.attention(blk, 32*128, 4*128)
		m.vector(blk+"attn_q_norm.weight", 128)
		m.vector(blk+"attn_k_norm.weight", 128)
		m.vector(blk+"ffn_norm.weight", m.dim)
		feedForward(blk)
	})
}

// gptOSS builds the shape of openai/gpt-oss-20b. As in the published files, the experts are MXFP4 and all
// other matrices are Q8_0. K-quants are impossible, because the row length is not a multiple of their block
// length.
func gptOSS(m *shaped) {
	m.typ = gguf.Q8_0
	m.begin("gpt-oss", 2880, 201088, false, map[string]any{
		"context_length": 131072, "feed_forward_length": 2880, "attention.head_count": 64,
		"attention.head_count_kv": 8, "attention.key_length": 64, "attention.value_length": 64,
		"attention.layer_norm_rms_epsilon": float32(1e-5), "attention.sliding_window": 128,
		"rope.dimension_count": 64, "rope.freq_base": float32(15e4), "rope.scaling.type": "yarn",
		"rope.scaling.factor": float32(32), "rope.scaling.original_context_length": 4096,
		"expert_count": 32, "expert_used_count": 4, "expert_feed_forward_length": 2880,
	})
	m.eachLayer(func(_ int, blk string) {
		m.vector(blk+"attn_norm.weight", m.dim)
		m.attention(blk, 64*64, 8*64)
		m.vector(blk+"attn_q.bias", 64*64)
		m.vector(blk+"attn_k.bias", 8*64)
		m.vector(blk+"attn_v.bias", 8*64)
		m.vector(blk+"attn_output.bias", m.dim)
		m.vector(blk+"attn_sinks.weight", 64)
		m.vector(blk+"post_attention_norm.weight", m.dim)
		m.experts(blk, 32, 2880, gguf.MXFP4)
		m.vector(blk+"ffn_gate_inp.bias", 32)
		m.Hollow(blk+"ffn_gate_exps.bias", gguf.F32, []int{32, 2880})
		m.Hollow(blk+"ffn_up_exps.bias", gguf.F32, []int{32, 2880})
		m.Hollow(blk+"ffn_down_exps.bias", gguf.F32, []int{32, m.dim})
	})
}

// qwen35 builds the shape of the language model of Qwen/Qwen3.5-9B.
func qwen35(m *shaped) {
	const keyHeads, valueHeads, head = 16, 32, 128
	const inner, mixed = valueHeads * head, (2*keyHeads + valueHeads) * head
	m.begin("qwen35", 4096, 248320, false, map[string]any{
		"context_length": 262144, "feed_forward_length": 12288, "attention.head_count": 16,
		"attention.head_count_kv": 4, "attention.key_length": 256, "attention.value_length": 256,
		"attention.layer_norm_rms_epsilon": float32(1e-6), "rope.freq_base": float32(1e7),
		"rope.dimension_count": 64, "rope.dimension_sections": []int32{11, 11, 10, 0},
		"full_attention_interval": 4, "ssm.conv_kernel": 4, "ssm.state_size": head,
		"ssm.group_count": keyHeads, "ssm.time_step_rank": valueHeads, "ssm.inner_size": inner,
	})
	m.eachLayer(func(layer int, blk string) {
		m.vector(blk+"attn_norm.weight", m.dim)
		if (layer+1)%4 == 0 {
			m.matrix(blk+"attn_q.weight", 2*16*256, m.dim) // queries and gates
			m.matrix(blk+"attn_k.weight", 4*256, m.dim)
			m.matrix(blk+"attn_v.weight", 4*256, m.dim)
			m.matrix(blk+"attn_output.weight", m.dim, 16*256)
			m.vector(blk+"attn_q_norm.weight", 256)
			m.vector(blk+"attn_k_norm.weight", 256)
		} else {
			m.matrix(blk+"attn_qkv.weight", mixed, m.dim)
			m.matrix(blk+"attn_gate.weight", inner, m.dim)
			m.matrix(blk+"ssm_alpha.weight", valueHeads, m.dim)
			m.matrix(blk+"ssm_beta.weight", valueHeads, m.dim)
			m.vector(blk+"ssm_a", valueHeads)
			m.vector(blk+"ssm_dt.bias", valueHeads)
			m.Hollow(blk+"ssm_conv1d.weight", gguf.F32, []int{mixed, 4})
			m.vector(blk+"ssm_norm.weight", head)
			m.matrix(blk+"ssm_out.weight", m.dim, inner)
		}
		m.vector(blk+"post_attention_norm.weight", m.dim)
		m.mlp(blk, 12288)
	})
}

// gemma4 builds the shape of the language model of google/gemma-4-12B.
func gemma4(m *shaped) {
	kv, window := make([]int32, m.layers), make([]bool, m.layers)
	for i := range kv {
		if kv[i], window[i] = 8, true; (i+1)%6 == 0 {
			kv[i], window[i] = 1, false
		}
	}
	m.begin("gemma4", 3840, 262144, true, map[string]any{
		"context_length": 262144, "feed_forward_length": 15360, "attention.head_count": 16,
		"attention.head_count_kv": kv, "attention.key_length": 512, "attention.value_length": 512,
		"attention.key_length_swa": 256, "attention.value_length_swa": 256,
		"attention.layer_norm_rms_epsilon": float32(1e-6), "attention.sliding_window": 1024,
		"attention.sliding_window_pattern": window, "attention.shared_kv_layers": 0,
		"rope.freq_base": float32(1e6), "rope.freq_base_swa": float32(1e4), "rope.dimension_count": 512,
		"rope.dimension_count_swa": 256, "final_logit_softcapping": float32(30),
		"embedding_length_per_layer_input": 0,
	})
	m.vector("rope_freqs.weight", 256)
	m.eachLayer(func(layer int, blk string) {
		head := 512
		if window[layer] {
			head = 256
		}
		m.vector(blk+"attn_norm.weight", m.dim)
		m.matrix(blk+"attn_q.weight", 16*head, m.dim)
		m.matrix(blk+"attn_k.weight", int(kv[layer])*head, m.dim)
		if window[layer] {
			m.matrix(blk+"attn_v.weight", int(kv[layer])*head, m.dim)
		}
		m.matrix(blk+"attn_output.weight", m.dim, 16*head)
		m.vector(blk+"attn_q_norm.weight", head)
		m.vector(blk+"attn_k_norm.weight", head)
		m.vector(blk+"post_attention_norm.weight", m.dim)
		m.vector(blk+"ffn_norm.weight", m.dim)
		m.mlp(blk, 15360)
		m.vector(blk+"post_ffw_norm.weight", m.dim)
		m.vector(blk+"layer_output_scale.weight", 1)
	})
}
