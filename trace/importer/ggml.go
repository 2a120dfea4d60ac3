package importer

import (
	"strconv"
	"strings"

	"gpuscope/trace"
	"gpuscope/trace/analyze/workclass"
)

// tensorRole says which of our operators computes a tensor of llama.cpp's graphs. Roles are tried in order.
type tensorRole struct {
	tensor string // name without the layer
	op     string // beginning of ggml's operation; "" for any
	block  string
	class  workclass.Class
	roles  []string
}

// tensorRoles has the names that llama.cpp gives to the tensors of its graphs, and our operators. The first
// row that fits counts. A projection with a fused addition has the name of the sum.
var tensorRoles = []tensorRole{
	{"Qcur", "MUL_MAT", "attn", workclass.QO, []string{"attn.q"}},
	{"Kcur", "MUL_MAT", "attn", workclass.KV, []string{"attn.k"}},
	{"Vcur", "MUL_MAT", "attn", workclass.KV, []string{"attn.v"}},
	{"wqkv", "MUL_MAT", "attn", workclass.QKV, []string{"attn.qkv"}},
	{"attn_out", "MUL_MAT", "attn", workclass.QO, []string{"attn.o"}},
	{"attn_output", "MUL_MAT", "attn", workclass.QO, []string{"attn.o"}},
	{"kqv_out", "MUL_MAT", "attn", workclass.QO, []string{"attn.o"}},
	{"ffn_inp", "MUL_MAT", "attn", workclass.QO, []string{"attn.o"}},
	{"Qcur_normed", "", "attn", workclass.Norms, []string{"attn.q_norm"}},
	{"Kcur_normed", "", "attn", workclass.Norms, []string{"attn.k_norm"}},
	{"Qcur", "", "attn", workclass.Attention, []string{"attn.rope"}},
	{"Kcur", "", "attn", workclass.Attention, []string{"attn.rope"}},
	{"kq", "", "attn", workclass.Attention, []string{"attn.sdpa"}},
	{"kq_soft_max", "", "attn", workclass.Attention, []string{"attn.sdpa"}},
	{"kqv", "", "attn", workclass.Attention, []string{"attn.sdpa"}},
	{"kqv_out", "", "attn", workclass.Attention, []string{"attn.sdpa"}},
	{"__fattn__", "", "attn", workclass.Attention, []string{"attn.sdpa"}},
	{"cache_k", "", "attn", workclass.Attention, []string{"attn.sdpa"}},
	{"cache_v", "", "attn", workclass.Attention, []string{"attn.sdpa"}},
	{"attn_norm", "", "attn", workclass.Norms, []string{"attn.norm", "delta.norm", "conv.norm"}},
	{"attn_post_norm", "", "attn", workclass.Norms, []string{"attn.post_norm"}},
	{"ffn_inp", "", "attn", workclass.Other, []string{"attn.add", "delta.add", "conv.add"}},
	{"ffn_norm", "", "mlp", workclass.Norms, []string{"mlp.norm"}},
	{"ffn_post_norm", "", "mlp", workclass.Norms, []string{"mlp.post_norm"}},
	{"ffn_gate", "MUL_MAT", "mlp", workclass.GateUp, []string{"mlp.gate"}},
	{"ffn_up", "MUL_MAT", "mlp", workclass.GateUp, []string{"mlp.up"}},
	{"ffn_down", "MUL_MAT", "mlp", workclass.Down, []string{"mlp.down"}},
	{"ffn_out", "MUL_MAT", "mlp", workclass.Down, []string{"mlp.down"}},
	{"l_out", "MUL_MAT", "mlp", workclass.Down, []string{"mlp.down"}},
	{"ffn_swiglu", "", "mlp", workclass.GateUp, []string{"mlp.silu_mul"}},
	{"ffn_geglu", "", "mlp", workclass.GateUp, []string{"mlp.gelu_mul"}},
	{"ffn_gate_par", "", "mlp", workclass.GateUp, []string{"mlp.silu_mul", "mlp.gelu_mul"}},
	{"l_out", "", "mlp", workclass.Other, []string{"mlp.add"}},
	{"ffn_moe_logits", "", "mlp", workclass.Router, []string{"mlp.router", "experts.router"}},
	{"ffn_moe_probs", "", "mlp", workclass.Router, []string{"mlp.route", "experts.route"}},
	{"ffn_moe_topk", "", "mlp", workclass.Router, []string{"mlp.route", "experts.route"}},
	{"ffn_moe_weights", "", "mlp", workclass.Router, []string{"mlp.route", "experts.route"}},
	{"ffn_moe_gate", "", "mlp", workclass.Experts, []string{"experts.gate", "mlp.gate"}},
	{"ffn_moe_up", "", "mlp", workclass.Experts, []string{"experts.up", "mlp.up"}},
	{"ffn_moe_down", "", "mlp", workclass.Experts, []string{"experts.down", "mlp.down"}},
	{"ffn_moe_out", "", "mlp", workclass.Experts, []string{"experts.combine", "mlp.combine"}},
	{"ffn_shexp", "", "shared", workclass.Experts, []string{"shared.down"}},
	{"linear_attn_qkv_mixed", "", "delta", workclass.Recurrent, []string{"delta.qkv"}},
	{"linear_attn_out", "", "delta", workclass.Recurrent, []string{"delta.out"}},
	{"result_norm", "", "", workclass.Norms, []string{"norm"}},
	{"result_output", "", "", workclass.Head, []string{"lm_head"}},
	{"inp_embd", "", "", workclass.Embedding, []string{"embed"}},
	{"embd", "", "", workclass.Embedding, []string{"embed"}},
}

// tensorOf divides the name of a tensor, such as "ffn_out-3" or "cache_k_l3 (view)". It returns the name
// without the layer, and the layer, which is -1 if the name has none.
func tensorOf(name string) (tensor string, layer int) {
	name, _, _ = strings.Cut(name, " (")
	at := strings.LastIndexByte(name, '-')
	if strings.HasPrefix(name, "cache_") {
		at = strings.LastIndex(name, "_l")
	}
	if at < 0 {
		return name, -1
	}
	digits := strings.TrimPrefix(strings.TrimPrefix(name[at:], "-"), "_l")
	layer, err := strconv.Atoi(digits)
	if err != nil || layer < 0 || layer > maxLayer || !isNumber(digits) {
		return name, -1
	}
	return name[:at], layer
}

// unnamedNorms counts the norms of each layer that have no name of their own: the first "norm-3" of a step is
// the norm before attention, and the second is that before the feed-forward part.
type unnamedNorms map[int]int

// role returns the role of a tensor that an operation computes.
func (n unnamedNorms) role(op, tensor string, layer int) (tensorRole, bool) {
	if tensor == "norm" && strings.Contains(op, "NORM") {
		switch n[layer]++; {
		case layer < 0:
			tensor = "result_norm"
		case n[layer] == 1:
			tensor = "attn_norm"
		default:
			tensor = "ffn_norm"
		}
	}
	for _, r := range tensorRoles {
		if r.tensor == tensor && strings.HasPrefix(op, r.op) {
			return r, true
		}
	}
	return tensorRole{}, false
}

// putTensor adds the launch of an operation that computes a named tensor.
func (r *recorder) putTensor(m *model, s *stepRows, norms unnamedNorms, op, name string, l launch) error {
	tensor, layer := tensorOf(name)
	role, known := norms.role(op, tensor, layer)
	label := strings.ToLower(op)
	if known {
		if i, ok := m.find(layer, role.roles...); ok {
			l.joined = trace.JoinedByTensor
			if strings.HasPrefix(op, "MUL_MAT") && m.classes[i] != workclass.Attention {
				label = "" // no label: a step has only one product with this matrix
			}
			return r.put(s, i, label, l)
		}
	}
	own := trace.Op{Kind: op, Class: string(role.class), Block: role.block}
	var err error
	if own.Name, err = r.name(name); err != nil {
		return err
	}
	if own.Kind, err = r.name(op); err != nil {
		return err
	}
	if layer >= 0 {
		own.Layer = &layer
	} else {
		own.Block = ""
	}
	return r.putOwn(s, own, l)
}
