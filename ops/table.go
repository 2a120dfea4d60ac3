package ops

import "slices"

// Info is a row of Table.
type Info struct {
	Kind string   // upstream's name: engine.Spec.Kind
	New  []string // its constructors; their doc comments are the operator's
	// Of is the kind of which this is the one for weights in a Format, which has no constructor of its own.
	Of, Format string
	// Routes are the ways of doing the work, where the live shape chooses between several.
	Routes []string
}

// Table lists every operator on tensors, then those on SymInts.
var Table = slices.Concat([]Info{
	{Kind: "add", New: []string{"Add"}, Routes: binaryRoutes},
	{Kind: "apply_rotary_emb", New: []string{"ApplyRotaryEmb"}},
	{Kind: "apply_rotary_emb_hf", New: []string{"ApplyRotaryEmbHF"}},
	{Kind: "apply_rotary_emb_interleaved", New: []string{"ApplyRotaryEmbInterleaved"}},
	{Kind: "argmax", New: []string{"Argmax", "ArgmaxValue"}},
	{Kind: "cat", New: []string{"Cat"}},
	{Kind: "div", New: []string{"Div"}, Routes: binaryRoutes},
}, formatKinds(Info{Kind: "embedding", New: []string{"Embedding"}}), []Info{
	{Kind: "gelu", New: []string{"GELU"}},
	{Kind: "layer_norm", New: []string{"LayerNorm"}},
}, formatKinds(Info{Kind: "linear", New: []string{"Linear"}, Routes: linearRouteNames}), []Info{
	{Kind: "mean", New: []string{"Mean"}},
	{Kind: "mul", New: []string{"Mul"}, Routes: binaryRoutes},
	{Kind: "permute", New: []string{"Permute"}},
	{Kind: "rms_norm", New: []string{"RMSNorm"}},
	{Kind: "sdpa_with_kv_cache", New: []string{"SDPA"}, Routes: sdpaRouteNames},
	{Kind: "select", New: []string{"Select"}},
	{Kind: "sigmoid", New: []string{"Sigmoid"}},
	{Kind: "silu", New: []string{"SiLU"}},
	{Kind: "silu_mul", New: []string{"SiLUMul"}},
	{Kind: "slice", New: []string{"Slice", "SliceRange"}},
	{Kind: "softmax", New: []string{"Softmax"}},
	{Kind: "sub", New: []string{"Sub"}, Routes: binaryRoutes},
	{Kind: "sum", New: []string{"Sum"}},
	{Kind: "topk", New: []string{"TopK"}},
	{Kind: "update_cache", New: []string{"UpdateCache"}},
	{Kind: "view", New: []string{"View"}},

	{Kind: "sym_add", New: []string{"SymAdd"}},
	{Kind: "sym_floordiv", New: []string{"SymFloorDiv"}},
	{Kind: "sym_mul", New: []string{"SymMul"}},
	{Kind: "sym_size", New: []string{"SymSize"}},
	{Kind: "sym_sub", New: []string{"SymSub"}},
	{Kind: "select_as_symint", New: []string{"SelectAsSymInt"}},
})
