package arch

import (
	"fmt"
	"slices"
	"strings"

	"gpuscope/engine/graph"
	"gpuscope/internal/printable"
)

// Architecture is a family of decoders: what the decoder's builder and the reading of its shape take from
// the family and not from the single file. It is a row of architectures, in a file of its own.
type Architecture struct {
	Name            string
	Gate            gated
	Biases          bool // of q, k and v
	HeadNorms       bool // norms of each head's queries and keys, before they are turned
	PostNorms       bool // norms of what attention and MLP add to the residual stream
	Fused           bool // q, k and v are one matrix, gate and up another
	scaledEmbedding bool // rows of the table are multiplied by sqrt(dim)

	Gguf Spelling // how GGUF files have it
	Hf   Spelling // how folders of Hugging Face have it
}

// Spelling is how files of one form have an architecture: what they call things, and what their converters
// did to the weights.
type Spelling struct {
	Called []string // what they call the architecture, where that is not the row's name
	Class  class
	Names  *names
	Keys   *keys
	pairs  *pairing
	// Only are keys of the class to which the builder has one answer.
	Only []only
	// scalings are further names of kinds of rotation scaling.
	scalings map[string]string
	// onePlus: norms multiply by 1 + their weights.
	onePlus bool
	// implied fills in what its files do not state.
	implied func(c *Config)
}

// gated is the operator that joins the two branches of an MLP.
type gated struct {
	Name string // in the graph
	join func(b *graph.Builder, name string, gate, up graph.ValueID) graph.ValueID
}

// only is a key that must be absent or have one value.
type only struct {
	Key       string
	Want      any    // an int, a float64, a bool or a string; nil where the key must be absent
	otherwise string // what another value stands for
}

// names are what a file calls the tensors of a decoder. Those of a layer are after its prefix. Those that
// few architectures have are asked for where the row says so.
type names struct {
	Embed, Norm, Head            string
	freqs, freqsShort, freqsLong string // divisors of the rotation's frequencies
	layer                        string // their prefix, a format of the layer's number
	AttnNorm, Q, K, V, O         string
	QBias, KBias, VBias          string
	QNorm, KNorm, AttnPostNorm   string
	Qkv                          string // in place of q, k and v
	FfnNorm, Gate, Up, Down      string
	GateUp                       string // in place of gate and up
	FfnPostNorm                  string
}

// keys are what a file calls the numbers of a decoder. Those that are empty it has no word for.
type keys struct {
	Layers, Dim, Ffn, Context string
	Heads, kvHeads, headDim   string
	Eps                       string
	window                    string // how many positions a layer sees
	windowUsed                string // whether it is applied; it is where files have no word for that
	windowFrom                string // the first layer with a window
	fullEach                  string // every so many-th layer sees all positions
	kinds                     string // what each layer sees, layer by layer
	scale                     string // of scores
	turned                    string // how much of a head is rotated
	localBase                 string // of the rotation in layers with a window
	Tied                      string // whether the embedding is the head too
	// sameDim are further sizes of heads, which must be headDim.
	sameDim []string
	// rotations are the keys of the rotation, which rotation reads for heads of so many dims.
	rotations []string
	rotation  func(r *configReader, headDim int) Rotation
	// inert are keys that every class of the form knows and that change nothing of what is computed here.
	inert []string
	// elsewhere are keys of classes that this version does not run.
	elsewhere *class
}

// List are all of them.
func (k *keys) List() []string {
	all := append([]string{
		k.Layers, k.Dim, k.Ffn, k.Context, k.Heads, k.kvHeads, k.headDim, k.Eps, k.window, k.windowUsed,
		k.windowFrom, k.fullEach, k.kinds, k.scale, k.turned, k.localBase, k.Tied,
	}, slices.Concat(k.sameDim, k.rotations)...)
	return slices.DeleteFunc(all, func(key string) bool { return key == "" })
}

// Of is what the names of a layer begin with.
func (n *names) Of(layer int) string { return fmt.Sprintf(n.layer, layer) }

// ggufNames are the names that llama.cpp's converters give.
var ggufNames = names{
	Embed: "token_embd.weight", Norm: "output_norm.weight", Head: "output.weight",
	freqs:      "rope_freqs.weight",
	freqsShort: "rope_factors_short.weight", freqsLong: "rope_factors_long.weight",
	layer:    "blk.%d.",
	AttnNorm: "attn_norm.weight", Q: "attn_q.weight", K: "attn_k.weight", V: "attn_v.weight",
	O: "attn_output.weight", Qkv: "attn_qkv.weight",
	QBias: "attn_q.bias", KBias: "attn_k.bias", VBias: "attn_v.bias",
	QNorm: "attn_q_norm.weight", KNorm: "attn_k_norm.weight", AttnPostNorm: "post_attention_norm.weight",
	FfnNorm: "ffn_norm.weight", Gate: "ffn_gate.weight", Up: "ffn_up.weight", Down: "ffn_down.weight",
	GateUp: "ffn_up.weight", FfnPostNorm: "post_ffw_norm.weight",
}

// ggufKeys are the metadata keys of llama.cpp, after the architecture's name.
var ggufKeys = keys{
	Layers: "block_count", Dim: "embedding_length", Ffn: "feed_forward_length", Context: "context_length",
	Heads: "attention.head_count", kvHeads: "attention.head_count_kv", headDim: "attention.key_length",
	Eps: "attention.layer_norm_rms_epsilon",
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
	Embed: "model.embed_tokens.weight", Norm: "model.norm.weight", Head: "lm_head.weight",
	layer:    "model.layers.%d.",
	AttnNorm: "input_layernorm.weight", Q: "self_attn.q_proj.weight", K: "self_attn.k_proj.weight",
	V: "self_attn.v_proj.weight", O: "self_attn.o_proj.weight", Qkv: "self_attn.qkv_proj.weight",
	QBias: "self_attn.q_proj.bias", KBias: "self_attn.k_proj.bias", VBias: "self_attn.v_proj.bias",
	QNorm: "self_attn.q_norm.weight", KNorm: "self_attn.k_norm.weight",
	FfnNorm: "post_attention_layernorm.weight", Gate: "mlp.gate_proj.weight", Up: "mlp.up_proj.weight",
	Down: "mlp.down_proj.weight", GateUp: "mlp.gate_up_proj.weight",
}

// Keys of config.json: how many positions the model was made for, which part of a head is rotated.
const (
	hfContext = "max_position_embeddings"
	hfPart    = "partial_rotary_factor"
	hfKinds   = "layer_types"
)

// hfKeys are the keys that transformers' models have in config.json.
var hfKeys = keys{
	Layers: "num_hidden_layers", Dim: "hidden_size", Ffn: "intermediate_size",
	Context: hfContext, Heads: "num_attention_heads", kvHeads: "num_key_value_heads",
	headDim: "head_dim", Eps: "rms_norm_eps", Tied: "tie_word_embeddings",
	rotation: hfRotation, rotations: hfRotations, inert: hfInert, elsewhere: &class{},
}

// Keys of classes of transformers to which the builder has one answer.
var (
	hfQuantized     = only{"quantization_config", nil, "weights that another program quantised"}
	hfSiLU          = only{"hidden_act", "silu", "another activation"}
	hfAttentionBias = only{"attention_bias", false, "biases in the attention"}
	hfMLPBias       = only{"mlp_bias", false, "biases in the MLP"}
)

// Architectures are those that this version runs.
var Architectures = []*Architecture{&Llama, &mistral, &Qwen2, &Qwen3, &Gemma3, &Phi3}

// architectureOf finds the row that a file names, and how files of its form spell it.
func architectureOf(file, name string, in func(*Architecture) *Spelling) (*Architecture, *Spelling, error) {
	var known []string
	for _, a := range Architectures {
		s := in(a)
		if s.Names == nil {
			continue // no files of this form are read
		}
		called := s.Called
		if called == nil {
			called = []string{a.Name}
		}
		if slices.Contains(called, name) {
			return a, s, nil
		}
		known = append(known, called...)
	}
	return nil, nil, fmt.Errorf("%s: not yet: architecture %s; this version runs %s", file,
		printable.Short(name, 80), strings.Join(known, ", "))
}
