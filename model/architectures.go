package model

import (
	"fmt"
	"slices"

	"gpuscope/engine"
	"gpuscope/internal/printable"
)

// architecture is a family of decoders: what the decoder's builder and the reading of its shape take from
// the family and not from the single file. It is a row of architectures, in a file of its own.
type architecture struct {
	name string
	gate gated
	gguf spelling // how GGUF files have it
	hf   spelling // how folders of Hugging Face have it
}

// spelling is how files of one form have an architecture: what they call things, and what their converters
// did to the weights.
type spelling struct {
	called []string // what they call the architecture, where that is not the row's name
	names  *names
	keys   *keys
	pairs  *pairing
	// only are what its files may state and the builder has one answer to.
	only []only
	tied bool // the embedding is the head too, where files do not say
}

// gated is the operator that joins the two branches of an MLP.
type gated struct {
	name string // in the graph
	join func(b *engine.Builder, name string, gate, up engine.ValueID) engine.ValueID
}

// only is a key that must be absent or have one value.
type only struct {
	key       string
	want      any    // an int, a bool or a string; nil where the key must be absent
	otherwise string // what another value stands for
}

// names are what a file calls the tensors of a decoder. Those of a layer are behind its prefix.
type names struct {
	embed, norm, head, freqs string
	layer                    string // their prefix, a format of the layer's number
	attnNorm, q, k, v, o     string
	ffnNorm, gate, up, down  string
	// said are the ends of names of tensors that say nothing that is not said elsewhere.
	said []string
}

// keys are what a file calls the numbers of a decoder.
type keys struct {
	layers, dim, ffn, context          string
	heads, kvHeads, headDim, valueDims string
	eps                                string
	// rotation reads how queries and keys of heads of so many dims are turned.
	rotation func(r *configReader, headDim int) rotation
}

// of is what the names of a layer begin with.
func (n *names) of(layer int) string { return fmt.Sprintf(n.layer, layer) }

// ggufNames are the names that llama.cpp's converters give.
var ggufNames = names{
	embed: "token_embd.weight", norm: "output_norm.weight", head: "output.weight", freqs: "rope_freqs.weight",
	layer:    "blk.%d.",
	attnNorm: "attn_norm.weight", q: "attn_q.weight", k: "attn_k.weight", v: "attn_v.weight",
	o:       "attn_output.weight",
	ffnNorm: "ffn_norm.weight", gate: "ffn_gate.weight", up: "ffn_up.weight", down: "ffn_down.weight",
}

// ggufKeys are the metadata keys of llama.cpp, behind the architecture's name.
var ggufKeys = keys{
	layers: "block_count", dim: "embedding_length", ffn: "feed_forward_length", context: "context_length",
	heads: "attention.head_count", kvHeads: "attention.head_count_kv", headDim: "attention.key_length",
	valueDims: "attention.value_length", eps: "attention.layer_norm_rms_epsilon",
	rotation: ggufRotation,
}

// hfNames are the names that models have in transformers.
var hfNames = names{
	embed: "model.embed_tokens.weight", norm: "model.norm.weight", head: "lm_head.weight",
	layer:    "model.layers.%d.",
	attnNorm: "input_layernorm.weight", q: "self_attn.q_proj.weight", k: "self_attn.k_proj.weight",
	v: "self_attn.v_proj.weight", o: "self_attn.o_proj.weight",
	ffnNorm: "post_attention_layernorm.weight", gate: "mlp.gate_proj.weight", up: "mlp.up_proj.weight",
	down: "mlp.down_proj.weight",
	said: []string{".rotary_emb.inv_freq"},
}

// hfKeys are the keys that transformers' models have in config.json.
var hfKeys = keys{
	layers: "num_hidden_layers", dim: "hidden_size", ffn: "intermediate_size",
	context: "max_position_embeddings", heads: "num_attention_heads", kvHeads: "num_key_value_heads",
	headDim: "head_dim", eps: "rms_norm_eps",
	rotation: hfRotation,
}

// architectures are those that this version runs.
var architectures = []*architecture{&llama}

// architectureOf finds the row that a file names, and how files of its form spell it.
func architectureOf(file, name string, in func(*architecture) *spelling) (*architecture, *spelling, error) {
	var known []string
	for _, a := range architectures {
		s := in(a)
		called := s.called
		if called == nil {
			called = []string{a.name}
		}
		if slices.Contains(called, name) {
			return a, s, nil
		}
		known = append(known, called...)
	}
	return nil, nil, fmt.Errorf("%s: not yet: architecture %s; this version runs %v", file,
		printable.Short(name, 80), known)
}
