package model

import (
	"fmt"
	"slices"
	"strings"

	"gpuscope/engine/graph"
	"gpuscope/internal/printable"
)

// architecture is a family of decoders: what the decoder's builder and the reading of its shape take from
// the family and not from the single file. It is a row of architectures, in a file of its own.
type architecture struct {
	name            string
	gate            gated
	biases          bool // of q, k and v
	headNorms       bool // norms of each head's queries and keys, before they are turned
	postNorms       bool // norms of what attention and MLP add to the residual stream
	fused           bool // q, k and v are one matrix, gate and up another
	scaledEmbedding bool // rows of the table are multiplied by sqrt(dim)

	gguf spelling // how GGUF files have it
	hf   spelling // how folders of Hugging Face have it
}

// spelling is how files of one form have an architecture: what they call things, and what their converters
// did to the weights.
type spelling struct {
	called []string // what they call the architecture, where that is not the row's name
	class  class
	names  *names
	keys   *keys
	pairs  *pairing
	// only are keys of the class to which the builder has one answer.
	only []only
	// scalings are further names of kinds of rotation scaling.
	scalings map[string]string
	// onePlus: norms multiply by 1 + their weights.
	onePlus bool
	// implied fills in what its files do not state.
	implied func(c *config)
}

// gated is the operator that joins the two branches of an MLP.
type gated struct {
	name string // in the graph
	join func(b *graph.Builder, name string, gate, up graph.ValueID) graph.ValueID
}

// only is a key that must be absent or have one value.
type only struct {
	key       string
	want      any    // an int, a float64, a bool or a string; nil where the key must be absent
	otherwise string // what another value stands for
}

// names are what a file calls the tensors of a decoder. Those of a layer are after its prefix. Those that
// few architectures have are asked for where the row says so.
type names struct {
	embed, norm, head            string
	freqs, freqsShort, freqsLong string // divisors of the rotation's frequencies
	layer                        string // their prefix, a format of the layer's number
	attnNorm, q, k, v, o         string
	qBias, kBias, vBias          string
	qNorm, kNorm, attnPostNorm   string
	qkv                          string // in place of q, k and v
	ffnNorm, gate, up, down      string
	gateUp                       string // in place of gate and up
	ffnPostNorm                  string
}

// keys are what a file calls the numbers of a decoder. Those that are empty it has no word for.
type keys struct {
	layers, dim, ffn, context string
	heads, kvHeads, headDim   string
	eps                       string
	window                    string // how many positions a layer sees
	windowUsed                string // whether it is applied; it is where files have no word for that
	windowFrom                string // the first layer with a window
	fullEach                  string // every so many-th layer sees all positions
	kinds                     string // what each layer sees, layer by layer
	scale                     string // of scores
	turned                    string // how much of a head is rotated
	localBase                 string // of the rotation in layers with a window
	tied                      string // whether the embedding is the head too
	// sameDim are further sizes of heads, which must be headDim.
	sameDim []string
	// rotations are the keys of the rotation, which rotation reads for heads of so many dims.
	rotations []string
	rotation  func(r *configReader, headDim int) rotation
	// inert are keys that every class of the form knows and that change nothing of what is computed here.
	inert []string
	// elsewhere are keys of classes that this version does not run.
	elsewhere *class
}

// list are all of them.
func (k *keys) list() []string {
	all := append([]string{
		k.layers, k.dim, k.ffn, k.context, k.heads, k.kvHeads, k.headDim, k.eps, k.window, k.windowUsed,
		k.windowFrom, k.fullEach, k.kinds, k.scale, k.turned, k.localBase, k.tied,
	}, slices.Concat(k.sameDim, k.rotations)...)
	return slices.DeleteFunc(all, func(key string) bool { return key == "" })
}

// of is what the names of a layer begin with.
func (n *names) of(layer int) string { return fmt.Sprintf(n.layer, layer) }

// ggufNames are the names that llama.cpp's converters give.
var ggufNames = names{
	embed: "token_embd.weight", norm: "output_norm.weight", head: "output.weight",
	freqs:      "rope_freqs.weight",
	freqsShort: "rope_factors_short.weight", freqsLong: "rope_factors_long.weight",
	layer:    "blk.%d.",
	attnNorm: "attn_norm.weight", q: "attn_q.weight", k: "attn_k.weight", v: "attn_v.weight",
	o: "attn_output.weight", qkv: "attn_qkv.weight",
	qBias: "attn_q.bias", kBias: "attn_k.bias", vBias: "attn_v.bias",
	qNorm: "attn_q_norm.weight", kNorm: "attn_k_norm.weight", attnPostNorm: "post_attention_norm.weight",
	ffnNorm: "ffn_norm.weight", gate: "ffn_gate.weight", up: "ffn_up.weight", down: "ffn_down.weight",
	gateUp: "ffn_up.weight", ffnPostNorm: "post_ffw_norm.weight",
}

// ggufKeys are the metadata keys of llama.cpp, after the architecture's name.
var ggufKeys = keys{
	layers: "block_count", dim: "embedding_length", ffn: "feed_forward_length", context: "context_length",
	heads: "attention.head_count", kvHeads: "attention.head_count_kv", headDim: "attention.key_length",
	eps: "attention.layer_norm_rms_epsilon",
	sameDim: []string{
		"attention.value_length", "attention.key_length_swa", "attention.value_length_swa",
	},
	turned: "rope.dimension_count", rotation: ggufRotation, rotations: ggufRotations,
	inert: ggufInert, elsewhere: &ggufElsewhere,
}

// ggufOnly are keys that llama.cpp reads for every architecture.
var ggufOnly = []only{
	{"expert_count", 0, "a mixture of experts"},
	{"attention.causal", true, "attention to what follows"},
	{"rope.scaling.yarn_attn_factor", 1.0, "YaRN's factor of scores"},
}

// hfNames are the names that models have in transformers.
var hfNames = names{
	embed: "model.embed_tokens.weight", norm: "model.norm.weight", head: "lm_head.weight",
	layer:    "model.layers.%d.",
	attnNorm: "input_layernorm.weight", q: "self_attn.q_proj.weight", k: "self_attn.k_proj.weight",
	v: "self_attn.v_proj.weight", o: "self_attn.o_proj.weight", qkv: "self_attn.qkv_proj.weight",
	qBias: "self_attn.q_proj.bias", kBias: "self_attn.k_proj.bias", vBias: "self_attn.v_proj.bias",
	qNorm: "self_attn.q_norm.weight", kNorm: "self_attn.k_norm.weight",
	ffnNorm: "post_attention_layernorm.weight", gate: "mlp.gate_proj.weight", up: "mlp.up_proj.weight",
	down: "mlp.down_proj.weight", gateUp: "mlp.gate_up_proj.weight",
}

// Keys of config.json: how many positions the model was made for, which part of a head is rotated.
const (
	hfContext = "max_position_embeddings"
	hfPart    = "partial_rotary_factor"
	hfKinds   = "layer_types"
)

// hfKeys are the keys that transformers' models have in config.json.
var hfKeys = keys{
	layers: "num_hidden_layers", dim: "hidden_size", ffn: "intermediate_size",
	context: hfContext, heads: "num_attention_heads", kvHeads: "num_key_value_heads",
	headDim: "head_dim", eps: "rms_norm_eps", tied: "tie_word_embeddings",
	rotation: hfRotation, rotations: hfRotations, inert: hfInert, elsewhere: &class{},
}

// Keys of classes of transformers to which the builder has one answer.
var (
	hfQuantized     = only{"quantization_config", nil, "weights that another program quantised"}
	hfSiLU          = only{"hidden_act", "silu", "another activation"}
	hfAttentionBias = only{"attention_bias", false, "biases in the attention"}
	hfMLPBias       = only{"mlp_bias", false, "biases in the MLP"}
)

// architectures are those that this version runs.
var architectures = []*architecture{&llama, &mistral, &qwen2, &qwen3, &gemma3, &phi3}

// architectureOf finds the row that a file names, and how files of its form spell it.
func architectureOf(file, name string, in func(*architecture) *spelling) (*architecture, *spelling, error) {
	var known []string
	for _, a := range architectures {
		s := in(a)
		if s.names == nil {
			continue // no files of this form are read
		}
		called := s.called
		if called == nil {
			called = []string{a.name}
		}
		if slices.Contains(called, name) {
			return a, s, nil
		}
		known = append(known, called...)
	}
	return nil, nil, fmt.Errorf("%s: not yet: architecture %s; this version runs %s", file,
		printable.Short(name, 80), strings.Join(known, ", "))
}
