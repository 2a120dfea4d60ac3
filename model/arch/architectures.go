package arch

import (
	"fmt"
	"slices"
	"strings"

	"gpuscope/engine/graph"
	"gpuscope/internal/printable"
)

// Architecture describes a family of decoders, such as Llama. It contains everything that the graph builder
// and the configuration reader need to know and that is the same for all files of the family.
type Architecture struct {
	Name            string
	Gate            gated
	Biases          bool // the q, k and v projections have biases
	HeadNorms       bool // the queries and keys of each head are normalized before RoPE
	WideNorms       bool // the queries of all heads are normalized together before RoPE, and so are the keys
	normsAfterRope  bool // the norms of HeadNorms come after RoPE
	PostNorms       bool // the outputs of attention and MLP are normalized before the residual addition
	NoPreNorms      bool // attention and MLP read the residual stream without a norm
	layerNorms      bool // norms subtract the mean: LayerNorm without biases instead of RMSNorm
	Parallel        bool // attention and MLP read the same normalized input, and their outputs are added
	Fused           bool // q, k and v are one matrix, and gate and up are one matrix
	FusedMLP        bool // gate and up are one matrix
	gatedAttention  bool // q also computes gates; the result of attention is multiplied by their sigmoids
	scaledEmbedding bool // embedding rows are multiplied by sqrt(dim)
	Experts         bool // layers have a mixture of experts instead of a gated MLP
	expertsBeside   bool // layers have an MLP, some also a mixture of experts in parallel; see twoBranches
	sharedExpert    bool // layers also have an expert that processes every token
	// normalized is true if the weights of a token's experts are divided by their sum. A configuration key
	// can override this value.
	normalized   bool
	ExpertBiases bool // the router and the matrices of the experts have biases
	Sinks        bool // each head has an attention sink: one more score in the softmax, without a value
	valueNorms   bool // the values of each head are normalized, by a norm without weights
	keysAsValues bool // a layer without a value matrix uses its keys before normalization as values
	LayerScales  bool // after each layer, the residual stream is multiplied by a number of that layer
	// fullUnrotated is true if layers with full attention have no RoPE. It has no effect in a model without
	// sliding windows.
	fullUnrotated bool
	// recurrent adds the weights of a recurrent mixer to the graph. stateSize returns the number of state
	// elements of such a layer. Both are nil if all layers have attention.
	recurrent func(m *Decoder, layer int) mixer
	stateSize func(c *Config) int64
	// If nullUnrotated is true and the configuration states the value null for the window, no layer of the
	// model has RoPE.
	nullUnrotated bool

	Gguf Spelling // conventions of GGUF files
	Hf   Spelling // conventions of Hugging Face folders
}

// Spelling describes how files of one format (GGUF or Hugging Face) represent an architecture: which names
// the files use, and how the stored weights differ from the weights that the graph needs.
type Spelling struct {
	Called []string // names of the architecture in these files; nil if Architecture.Name is the only one
	Class  class
	Names  *names
	Keys   *keys
	pairs  *pairing
	// Only is the list of configuration keys for which the builder supports only one value.
	Only []only
	// scalings lists types of RoPE scaling that have an unusual name in these files. It maps this name to
	// the usual name of the type.
	scalings map[string]string
	// onePlus is true if the files store the weights of a norm minus 1. The norm then multiplies by 1 + the
	// stored weight.
	onePlus bool
	// implied is a function that sets configuration values that the files do not state directly.
	implied func(c *Config)
	// recurrent is a function that reads which layers are recurrent and how large their states are.
	// recurrentKind is the name of the recurrent layer type in files that list the type of each layer.
	recurrent     func(r *configReader, c *Config)
	recurrentKind string
	// For linear attention: logDecay is true if the files store the logarithm of a decay factor. tiledHeads
	// is true if value head h uses key head h modulo the number of key heads. Otherwise consecutive value
	// heads share a key head.
	logDecay, tiledHeads bool
	// fullEach is n if every n-th layer has full attention and no configuration key states n. Otherwise it is
	// 0.
	fullEach int
	// listed is true if files with a sliding window must list the layers to which the window applies.
	listed bool
	// unrotatedEach is n if every n-th layer has no RoPE and no configuration key states n. Otherwise it is
	// 0.
	unrotatedEach int
	// storedBiases is true if a projection of attention has a bias whenever the files contain one. Otherwise
	// Architecture.Biases and the configuration determine which projections have biases.
	storedBiases bool
	// transposed is true if stacks of float matrices have the dims [experts, columns, rows].
	transposed bool
	// alternating is true if rows of gate and of up alternate in the tensor that contains both. Otherwise all
	// gate rows of an expert come first.
	alternating bool
	// ropeKeys lists keys of RoPE scaling that are read only for some architectures, among them this one.
	ropeKeys []string
}

// gated is the operator that combines the gate and up branches of an MLP.
type gated struct {
	Name string // name of the operator in the graph
	join func(b *graph.Builder, name string, gate, up graph.ValueID) graph.ValueID
}

// only is a configuration key that must be absent or have one specific value.
type only struct {
	Key       string
	Want      any    // an int, a float64, a bool, a string or an orNull; nil if the key must be absent
	otherwise string // the unsupported feature that every other value requests
}

// orNull is a string value for only.Want. The value null is accepted too.
type orNull string

// names holds the names that a decoder's tensors have in a file. The full name of a layer's tensor is the
// layer's prefix plus the name here. The name of a tensor that exists only in some architectures is ignored
// for all other architectures.
type names struct {
	Embed, Norm, Head            string
	freqs, freqsShort, freqsLong string // divisors of the RoPE frequencies
	layer                        string // prefix of a layer's tensors, with %d for the layer number
	AttnNorm, Q, K, V, O         string
	QBias, KBias, VBias, OBias   string
	QNorm, KNorm, AttnPostNorm   string
	Qkv                          string // one tensor in place of Q, K and V, if they are fused
	FfnNorm, Gate, Up, Down      string
	GateUp                       string // one tensor in place of Gate and Up, if they are fused
	FfnPostNorm                  string
	Router, RouterBias           string
	sinks                        string
	// The matrices of the experts. A name with a %d for the number of the expert stands for one tensor per
	// expert. A name without a %d stands for one tensor that contains the matrices of all experts.
	ExpertGate, ExpertUp, ExpertDown string
	// Some files have these two tensors instead of the three above: gate and up are one tensor.
	ExpertGateUp, ExpertDowns string
	// The matrices of the shared expert. SharedWeight determines the weight of the expert's output for a
	// token: the sigmoid of the product of SharedWeight and the token.
	SharedGate, SharedUp, SharedDown, SharedWeight string
	// The biases of the experts' matrices.
	ExpertGateBias, ExpertUpBias     string
	ExpertGateUpBias, ExpertDownBias string
	ExpertFactors                    string // factors by which the weights of the experts are multiplied
	// The norms of layers with an MLP and experts in parallel; see twoBranches. RouterScale contains the
	// weights of the router's norm, multiplied by sqrt(dim).
	MlpPostNorm, ExpertNorm, ExpertPostNorm, RouterScale string
	// LayerScale is a number by which the residual stream after a layer is multiplied.
	LayerScale string
	// The matrices and norms of per-layer inputs; see layerInput. The first three tensors exist once per
	// model, the others once per layer.
	InputEmbed, InputFromEmbed, InputNorm string
	InputGate, InputProj, InputPostNorm   string
	convIn, convTaps, convOut             string // short convolutions
	// The matrices of linear attention: deltaQKV computes queries, keys and values, deltaZ computes the
	// gate, deltaAlpha the decay of the state, and deltaBeta how strongly a token is written to the state.
	deltaQKV, deltaZ, deltaAlpha, deltaBeta string
	deltaA, deltaDT, deltaNorm, deltaOut    string
}

// keys holds, for each setting of a decoder, its configuration key in files of one format. The key is "" if
// the format has none for the setting.
type keys struct {
	Layers, Dim, Ffn, Context string
	Heads, kvHeads, headDim   string
	localHeadDim              string // headDim of layers with a window, if different
	fullHeadDim, fullKVHeads  string // headDim and kvHeads of layers with full attention, if different
	unequal                   bool   // whether the numbers of a per-layer list may differ
	byLayer                   string // object with settings of single layers, such as "2.head_dim"
	sharedKV                  string // how many of the last layers have no keys and values of their own
	sharedWide                string // whether the MLPs of the layers in sharedKV are twice as wide
	layerInput                string // number of elements of the per-layer input; 0 for none; see layerInput
	Eps                       string
	window                    string // size of the sliding window
	windowUsed                string // whether the window is applied; "" if always
	windowFrom                string // index of the first layer with a window
	fullEach                  string // n: every n-th layer has full attention
	kinds                     string // attention type of each layer
	scale                     string // scale of the attention scores
	scoreCap                  string // soft cap of the attention scores
	logitCap                  string // soft cap of the logits
	embedScale                string // factor of the rows of the embedding
	residualScale             string // factor of the outputs of attention and MLP
	logitScale                string // factor of the logits
	biases                    string // whether the q, k and v projections have biases
	outBias                   string // whether the output projection of attention has a bias
	rotated                   string // list with 1 for each layer with RoPE and 0 for each layer without
	unrotatedEach             string // n: every n-th layer has no RoPE
	turned                    string // how many dims of a head are rotated
	localBase                 string // RoPE base in layers with a window
	localTurned               string // how many dims of a head are rotated in layers with a window
	Tied                      string // whether the embedding is also the output head
	mixed                     string // whether layers have experts; "" if the number of experts shows this
	experts, chosen           string // number of experts of a layer, and how many of them each token uses
	expertFfn                 string // hidden size of an expert
	sharedFfn                 string // hidden size of the shared expert
	normalize                 string // whether the weights of a token's experts are divided by their sum
	sparseEach                string // n: only every n-th layer has experts
	dense                     string // list of layers that have an MLP instead of experts
	// sameDim lists further keys that state the size of a head. If a file has them, they must state the same
	// size as headDim. sameLocalDim lists such keys for layers with a window.
	sameDim, sameLocalDim []string
	// rotations lists the keys that configure RoPE. rotation is the function that reads these keys for heads
	// of headDim dims.
	rotations []string
	rotation  func(r *configReader, headDim int) Rotation
	// recurrent lists the keys that configure recurrent layers. zeroKV is true if the number of KV heads is a
	// list with 0 for each recurrent layer.
	recurrent []string
	zeroKV    bool
	// inert lists keys that all models of the format may have and that do not affect the results.
	inert []string
	// elsewhere lists keys that transformers or llama.cpp reads, but only for architectures that this
	// version does not run.
	elsewhere *class
}

// List returns all keys that are not empty.
func (k *keys) List() []string {
	all := append([]string{
		k.Layers, k.Dim, k.Ffn, k.Context, k.Heads, k.kvHeads, k.headDim, k.localHeadDim, k.fullHeadDim,
		k.fullKVHeads, k.byLayer, k.sharedKV, k.sharedWide, k.layerInput, k.Eps, k.window, k.windowUsed,
		k.windowFrom, k.fullEach, k.kinds, k.scale, k.turned, k.localBase, k.Tied,
		k.scoreCap, k.logitCap, k.embedScale, k.residualScale, k.logitScale, k.biases, k.outBias, k.rotated,
		k.unrotatedEach, k.mixed, k.experts, k.chosen, k.expertFfn, k.normalize, k.sparseEach, k.dense,
		k.sharedFfn,
		k.localTurned,
	}, slices.Concat(k.sameDim, k.sameLocalDim, k.rotations, k.recurrent)...)
	return slices.DeleteFunc(all, func(key string) bool { return key == "" })
}

// Of returns the prefix with which the names of a layer's tensors begin.
func (n *names) Of(layer int) string { return fmt.Sprintf(n.layer, layer) }

// ggufNames are the tensor names that llama.cpp's converters write.
var ggufNames = names{
	Embed: "token_embd.weight", Norm: "output_norm.weight", Head: "output.weight",
	freqs:      "rope_freqs.weight",
	freqsShort: "rope_factors_short.weight", freqsLong: "rope_factors_long.weight",
	layer:    "blk.%d.",
	AttnNorm: "attn_norm.weight", Q: "attn_q.weight", K: "attn_k.weight", V: "attn_v.weight",
	O: "attn_output.weight", Qkv: "attn_qkv.weight",
	QBias: "attn_q.bias", KBias: "attn_k.bias", VBias: "attn_v.bias", OBias: "attn_output.bias",
	QNorm: "attn_q_norm.weight", KNorm: "attn_k_norm.weight", AttnPostNorm: "post_attention_norm.weight",
	FfnNorm: "ffn_norm.weight", Gate: "ffn_gate.weight", Up: "ffn_up.weight", Down: "ffn_down.weight",
	Router: "ffn_gate_inp.weight", RouterBias: "ffn_gate_inp.bias", sinks: "attn_sinks.weight",
	ExpertGateBias: "ffn_gate_exps.bias", ExpertUpBias: "ffn_up_exps.bias",
	ExpertDownBias: "ffn_down_exps.bias", ExpertGate: "ffn_gate_exps.weight", ExpertUp: "ffn_up_exps.weight",
	ExpertDown:   "ffn_down_exps.weight",
	ExpertGateUp: "ffn_gate_up_exps.weight", ExpertDowns: "ffn_down_exps.weight",
	SharedGate: "ffn_gate_shexp.weight", SharedUp: "ffn_up_shexp.weight",
	SharedDown: "ffn_down_shexp.weight", SharedWeight: "ffn_gate_inp_shexp.weight",
	ExpertFactors: "ffn_down_exps.scale", RouterScale: "ffn_gate_inp.scale",
	MlpPostNorm: "post_ffw_norm_1.weight", ExpertNorm: "pre_ffw_norm_2.weight",
	ExpertPostNorm: "post_ffw_norm_2.weight",
	GateUp:         "ffn_up.weight", FfnPostNorm: "post_ffw_norm.weight", LayerScale: "layer_output_scale.weight",
	InputEmbed: "per_layer_token_embd.weight", InputFromEmbed: "per_layer_model_proj.weight",
	InputNorm: "per_layer_proj_norm.weight", InputGate: "inp_gate.weight", InputProj: "proj.weight",
	InputPostNorm: "post_norm.weight",
}

// ggufKeys are the metadata keys of llama.cpp without the architecture's prefix.
var ggufKeys = keys{
	Layers: "block_count", Dim: "embedding_length", Ffn: "feed_forward_length", Context: "context_length",
	Heads: "attention.head_count", kvHeads: "attention.head_count_kv", headDim: "attention.key_length",
	Eps:          "attention.layer_norm_rms_epsilon",
	sameDim:      []string{"attention.value_length"},
	sameLocalDim: []string{"attention.key_length_swa", "attention.value_length_swa"},
	turned:       "rope.dimension_count", rotation: ggufRotation, rotations: ggufRotations,
	inert: ggufInert, elsewhere: &ggufElsewhere,
}

// ggufOnly lists the keys that llama.cpp reads for every architecture and for which the builder supports
// only one value.
var ggufOnly = []only{
	{"expert_count", 0, "a mixture of experts"},
	{"attention.causal", true, "bidirectional attention"},
}

// mixtureOnly is the counterpart of ggufOnly for architectures with experts.
var mixtureOnly = []only{
	{"attention.causal", true, "bidirectional attention"},
	{"expert_shared_count", 0, "a shared expert"},
	{"expert_shared_feed_forward_length", 0, "a shared expert"},
}

// mixtureKeys is a copy of ggufKeys plus the keys of experts.
var mixtureKeys = withExperts(ggufKeys)

// withExperts returns a copy of k plus the metadata keys of experts in llama.cpp.
func withExperts(k keys) keys {
	k.experts, k.chosen, k.expertFfn = "expert_count", "expert_used_count", "expert_feed_forward_length"
	return k
}

// hfNames are the tensor names in Hugging Face transformers.
var hfNames = names{
	Embed: "model.embed_tokens.weight", Norm: "model.norm.weight", Head: "lm_head.weight",
	layer:    "model.layers.%d.",
	AttnNorm: "input_layernorm.weight", Q: "self_attn.q_proj.weight", K: "self_attn.k_proj.weight",
	V: "self_attn.v_proj.weight", O: "self_attn.o_proj.weight", Qkv: "self_attn.qkv_proj.weight",
	QBias: "self_attn.q_proj.bias", KBias: "self_attn.k_proj.bias", VBias: "self_attn.v_proj.bias",
	OBias: "self_attn.o_proj.bias",
	QNorm: "self_attn.q_norm.weight", KNorm: "self_attn.k_norm.weight",
	FfnNorm: "post_attention_layernorm.weight", Gate: "mlp.gate_proj.weight", Up: "mlp.up_proj.weight",
	Down: "mlp.down_proj.weight", GateUp: "mlp.gate_up_proj.weight",
	Router: "mlp.gate.weight", ExpertGate: "mlp.experts.%d.gate_proj.weight",
	ExpertUp: "mlp.experts.%d.up_proj.weight", ExpertDown: "mlp.experts.%d.down_proj.weight",
	ExpertGateUp: "mlp.experts.gate_up_proj", ExpertDowns: "mlp.experts.down_proj",
	SharedGate: "mlp.shared_expert.gate_proj.weight", SharedUp: "mlp.shared_expert.up_proj.weight",
	SharedDown:       "mlp.shared_expert.down_proj.weight",
	SharedWeight:     "mlp.shared_expert_gate.weight",
	ExpertGateUpBias: "mlp.experts.gate_up_proj_bias", ExpertDownBias: "mlp.experts.down_proj_bias",
	sinks: "self_attn.sinks",
}

// Three keys of config.json: the trained context, the fraction of each head's dims that RoPE rotates, and
// each layer's type of attention.
const (
	hfContext = "max_position_embeddings"
	hfPart    = "partial_rotary_factor"
	hfKinds   = "layer_types"
)

// hfKeys are the keys of config.json in Hugging Face transformers.
var hfKeys = keys{
	Layers: "num_hidden_layers", Dim: "hidden_size", Ffn: "intermediate_size",
	Context: hfContext, Heads: "num_attention_heads", kvHeads: "num_key_value_heads",
	headDim: "head_dim", Eps: "rms_norm_eps", Tied: "tie_word_embeddings",
	rotation: hfRotation, rotations: hfRotations, inert: hfInert, elsewhere: &class{},
}

// Keys of config.json for which the builder supports only one value.
var (
	hfQuantized     = only{"quantization_config", nil, "weights already quantized by another program"}
	hfSiLU          = only{"hidden_act", "silu", "another activation"}
	hfAttentionBias = only{"attention_bias", false, "biases in the attention layers"}
	hfMLPBias       = only{"mlp_bias", false, "biases in the MLP layers"}
)

// Architectures lists the architectures that this version runs.
var Architectures = []*Architecture{
	&Llama, &mistral, &Qwen2, &Qwen3, &Gemma3, &Phi3, &granite, &smolLM3, &olmo2, &olmo3, &exaone4, &gemma2,
	&mistral3, &cohere2, &glm4, &seedOSS, &ernie45, &hunyuan, &qwen3MoE, &graniteMoE, &olmoe, &gemma4,
	&gptOSS, &lfm2, &qwen35, &qwen35MoE,
}

// architectureOf returns the architecture that has the given name in files of one format, and its Spelling in
// this format. The function `in` returns the Spelling of an architecture in the format.
func architectureOf(file, name string, in func(*Architecture) *Spelling) (*Architecture, *Spelling, error) {
	var known []string
	for _, a := range Architectures {
		s := in(a)
		if s.Names == nil {
			continue // this version does not read the architecture from files of this format
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
	return nil, nil, fmt.Errorf("%s: not supported yet: architecture %s; this version supports %s", file,
		printable.Short(name, 80), strings.Join(known, ", "))
}
