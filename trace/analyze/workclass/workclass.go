// Package workclass sorts the operators of a model into classes of work: the projections of attention,
// attention itself, the matrices of the feed-forward part, norms, and so on. Every engine has these classes,
// whatever it names, splits or fuses its kernels. So the times of two engines can be compared class by class.
package workclass

import (
	"slices"
	"strings"

	"gpuscope/trace"
)

// Class is a class of work: the name that tables show.
type Class string

// The classes of work. Query and output projections have the same shape in many models, as do key and value,
// and gate and up. A profile that states only shapes cannot tell them apart, so they share a class.
const (
	Embedding Class = "embedding"
	QO        Class = "q and o"     // query and output projection of attention
	KV        Class = "k and v"     // key and value projection
	QKV       Class = "q, k and v"  // one matrix with all three projections
	Attention Class = "attention"   // with RoPE and the writes of the KV cache
	GateUp    Class = "gate and up" // with the gated activation, such as SwiGLU
	Down      Class = "down"
	Experts   Class = "experts" // matrices of a mixture of experts, shared experts too
	Router    Class = "router"  // the choice of the experts
	Recurrent Class = "recurrent"
	Norms     Class = "norms"
	Head      Class = "head"  // the matrix of the logits
	Other     Class = "other" // additions, other activations, copies, sampling
)

// Classes lists all classes in the order in which tables show them, which is about the order in which a step
// computes them.
var Classes = []Class{
	Embedding, QO, KV, QKV, Attention, GateUp, Down, Experts, Router, Recurrent, Norms, Head, Other,
}

// Matrices lists the classes of products with weights.
var Matrices = []Class{QO, KV, QKV, GateUp, Down, Experts, Head}

// Unnamed reports whether the products of a run are in Other, because their operators have no names: the run
// has no dispatch in the classes of Matrices, but some in Other. This is the case in a profile that was
// imported without a model. `has` reports whether the run has dispatches of a class.
func Unnamed(has func(Class) bool) bool { return has(Other) && !slices.ContainsFunc(Matrices, has) }

// DependsOnNames reports whether the time of a class depends on whether the operators of a run have names
// (see Unnamed).
func DependsOnNames(c Class) bool { return c == Other || slices.Contains(Matrices, c) }

// Of returns the class of each operator of a graph, by id. The names of the operators decide. Operators of an
// ExecuTorch program are numbered instead of named; then their order in the layer decides.
func Of(g *trace.Graph) []Class {
	classes := make([]Class, len(g.Ops))
	for i := range g.Ops {
		classes[i] = OfOp(&g.Ops[i])
	}
	inOrder(g, classes)
	activations(g, classes)
	return classes
}

// activations classifies the gated activations by the matrices of their layer, or by all matrices if their
// layer is not known. They belong to the experts if there are no other gate and up matrices, and to Other if
// there are neither, as in a profile whose matrices have no names.
func activations(g *trace.Graph, classes []Class) {
	const all = -1
	has := map[int]map[Class]bool{all: {}} // by layer, the classes of the matrices
	each := func(do func(i, layer int, activation bool)) {
		for i := range g.Ops {
			o, layer := &g.Ops[i], all
			if o.Layer != nil {
				layer = *o.Layer
			}
			do(i, layer, ofKind(strings.ToLower(o.Kind)) == GateUp)
		}
	}
	each(func(i, layer int, activation bool) {
		if has[layer] == nil {
			has[layer] = map[Class]bool{}
		}
		if !activation {
			has[layer][classes[i]], has[all][classes[i]] = true, true
		}
	})
	each(func(i, layer int, activation bool) {
		switch {
		case !activation || classes[i] != GateUp || has[layer][GateUp]:
		case has[layer][Experts]:
			classes[i] = Experts
		default:
			classes[i] = Other
		}
	})
}

// OfOp returns the class of an operator, judged by its name and its kind. It is Other for a matrix whose name
// does not say what the matrix does.
func OfOp(o *trace.Op) Class {
	if c := Class(o.Class); o.Class != "" && slices.Contains(Classes, c) {
		return c
	}
	kind := strings.ToLower(o.Kind)
	switch {
	case strings.HasPrefix(kind, "linear_experts"), kind == "combine_experts", strings.HasPrefix(kind, "mul_mat_id"):
		return Experts
	case strings.HasPrefix(kind, "linear"), strings.HasPrefix(kind, "mul_mat"):
		return ofMatrix(o)
	}
	c := ofKind(kind)
	if c == GateUp {
		return ofRole(o.Block, "gate", true) // an activation of experts belongs to them
	}
	return c
}

// ofMatrix returns the class of a product with a matrix. A fused operator has the first class of its parts.
func ofMatrix(o *trace.Op) Class {
	names := o.Parts
	if len(names) == 0 {
		names = []string{o.Name}
	}
	for _, name := range names {
		part := trace.Op{Name: name, Layer: o.Layer, Block: o.Block}
		if c := ofRole(part.Block, part.ShortName(), o.Layer != nil); c != Other {
			return c
		}
	}
	return Other
}

// ofRole returns the class of a matrix with a role such as q, in a block such as attn.
func ofRole(block, role string, inLayer bool) Class {
	switch role {
	case "router", "route":
		return Router
	case "lm_head", "output":
		return Head
	}
	switch block {
	case "shared", "experts":
		return Experts
	case "delta", "conv", "recurrent":
		return Recurrent
	}
	if !inLayer {
		return Other
	}
	switch role {
	case "q", "o", "q_proj", "o_proj":
		return QO
	case "k", "v", "k_proj", "v_proj":
		return KV
	case "qkv", "qkv_proj":
		return QKV
	case "gate", "up", "gate_up", "gate_proj", "up_proj":
		if block == "attn" {
			return QO // the gate of attention has the size of q
		}
		return GateUp
	case "down", "down_proj":
		return Down
	}
	return Other
}

// kindClasses classifies operators that do not multiply with a matrix: an operator whose kind contains `part`
// has the class `class`. The first row that matches applies. The kinds are those of gpuscope, of ExecuTorch
// and of ggml.
var kindClasses = []struct {
	part  string
	class Class
}{
	{"router", Router},
	{"topk_moe", Router},
	{"conv1d", Recurrent},
	{"delta_rule", Recurrent},
	{"ssm_", Recurrent},
	{"delta_net", Recurrent},
	{"rwkv", Recurrent},
	{"norm", Norms},
	{"silu_mul", GateUp},
	{"gelu_mul", GateUp},
	{"glu", GateUp},
	{"sdpa", Attention},
	{"rotary", Attention},
	{"rope", Attention},
	{"update_cache", Attention},
	{"flash_attn", Attention},
	{"soft_max", Attention},
	{"set_rows", Attention},
	{"attention", Attention},
	{"embedding", Embedding},
	{"get_rows", Embedding}, // ggml also selects the last row with this operation
}

func ofKind(kind string) Class {
	for _, row := range kindClasses {
		if strings.Contains(kind, row.part) {
			return row.class
		}
	}
	return Other
}

// inOrder classifies the matrices that have no role. Of the matrices before attention in a layer, the first
// is the query projection, and the others are the key and value projections. The matrices after attention are
// the output projection. In the feed-forward part the last matrix is down, and everything between the first
// matrix and the last belongs to gate and up. The last matrix of the graph is the head.
func inOrder(g *trace.Graph, classes []Class) {
	type part struct {
		layer int
		block string
	}
	var parts []part
	matrices, attends := map[part][]int{}, map[part]int{}
	last := -1
	for i := range g.Ops {
		o := &g.Ops[i]
		kind := strings.ToLower(o.Kind)
		matrix := classes[i] == Other && strings.HasPrefix(kind, "linear")
		if o.Layer == nil {
			if matrix {
				last = i
			}
			continue
		}
		at := part{*o.Layer, o.Block}
		switch {
		case matrix:
			if _, ok := matrices[at]; !ok {
				parts = append(parts, at)
			}
			matrices[at] = append(matrices[at], i)
		case strings.Contains(kind, "sdpa"):
			attends[at] = i
		}
	}
	if last >= 0 {
		classes[last] = Head
	}
	for _, at := range parts {
		list := matrices[at]
		switch sdpa, ok := attends[at]; {
		case ok:
			for n, i := range list {
				if classes[i] = KV; n == 0 || i > sdpa {
					classes[i] = QO
				}
			}
		case at.block == "mlp":
			for _, i := range list {
				classes[i] = GateUp
			}
			n := len(list)
			if n < 2 {
				break
			}
			classes[list[n-1]] = Down
			for i := list[0]; i < list[n-1]; i++ { // the activation between gate, up and down
				if o := &g.Ops[i]; classes[i] == Other && o.Layer != nil && (part{*o.Layer, o.Block}) == at {
					classes[i] = GateUp
				}
			}
		}
	}
}
