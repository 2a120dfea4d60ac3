package model

import (
	"fmt"

	"gpuscope/engine"
	"gpuscope/internal/printable"
	"gpuscope/model/gguf"
)

// architecture is a family of decoders: what the decoder's builder and the reading of its shape take from
// the family and not from the single file. It is a row of architectures, in a file of its own.
type architecture struct {
	name  string // general.architecture, which is also what its metadata keys begin with
	names *names
	// rotate is how dims of a head are paired to be turned by the position.
	rotate func(b *engine.Builder, name string, q, k, cos, sin engine.ValueID) (yq, yk engine.ValueID)
	gate   gated
	// only are numbers that its files may state and the builder has one answer to.
	only []only
}

// gated is the operator that joins the two branches of an MLP.
type gated struct {
	name string // in the graph
	join func(b *engine.Builder, name string, gate, up engine.ValueID) engine.ValueID
}

// only is a metadata key that must be absent or have one value.
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

// architectures are those that this version runs.
var architectures = []*architecture{&llama}

// architectureOf finds the row that a file asks for.
func architectureOf(f *gguf.File) (*architecture, error) {
	name, err := f.String("general.architecture")
	if err != nil {
		return nil, err
	}
	known := make([]string, len(architectures))
	for i, a := range architectures {
		if known[i] = a.name; a.name == name {
			return a, nil
		}
	}
	return nil, fmt.Errorf("%s: not yet: architecture %s; this version runs %v", f.Name(),
		printable.Short(name, 80), known)
}
