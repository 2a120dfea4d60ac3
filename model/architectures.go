package model

import (
	"cmp"
	"fmt"

	"gpuscope/engine"
	"gpuscope/internal/printable"
)

// architecture is a family of decoders: what the decoder's builder and the reading of its shape take from
// the family and not from the single file. It is a row of architectures, in a file of its own.
type architecture struct {
	name string
	gate gated
	gguf spelling // how GGUF files have it
}

// spelling is how files of one form have an architecture: what they call things, and what their converters
// did to the weights.
type spelling struct {
	name  string // of the architecture, where it is not the row's
	names *names
	keys  *keys
	// rotate is how dims of a head are paired to be turned by the position.
	rotate func(b *engine.Builder, name string, q, k, cos, sin engine.ValueID) (yq, yk engine.ValueID)
	// only are numbers that its files may state and the builder has one answer to.
	only []only
}

// gated is the operator that joins the two branches of an MLP.
type gated struct {
	name string // in the graph
	join func(b *engine.Builder, name string, gate, up engine.ValueID) engine.ValueID
}

// only is a key that must be absent or have one value.
type only struct {
	key       string
	want      int
	otherwise string // what another value stands for
}

// names are what a file calls the tensors of a decoder. Those of a layer are behind its prefix.
type names struct {
	embed, norm, head, freqs string
	layer                    string // their prefix, a format of the layer's number
	attnNorm, q, k, v, o     string
	ffnNorm, gate, up, down  string
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

// architectures are those that this version runs.
var architectures = []*architecture{&llama}

// architectureOf finds the row that a file names, and how files of its form spell it.
func architectureOf(file, name string, in func(*architecture) *spelling) (*architecture, *spelling, error) {
	var known []string
	for _, a := range architectures {
		s := in(a)
		own := cmp.Or(s.name, a.name)
		if own == name {
			return a, s, nil
		}
		known = append(known, own)
	}
	return nil, nil, fmt.Errorf("%s: not yet: architecture %s; this version runs %v", file,
		printable.Short(name, 80), known)
}
