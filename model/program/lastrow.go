package program

import (
	"math"
	"slices"
	"strings"

	"gpuscope/model/checkpoint/pte/vulkan"
)

// lastRule is the fusion rule that removes the row selections added by lastRows. If the rule is off,
// lastRows is not called.
const lastRule = "last"

// rowWise lists operators that work row by row. It maps each operator to the names of some of its
// arguments. To compute a row of the outputs, the operator reads only the same row of these arguments. The
// rows of a tensor are along its dim 1, one row for each token.
var rowWise = map[string][]string{
	"et_vk.rms_norm.default":                {"x"},
	"aten.native_layer_norm.default":        {"input"},
	"et_vk.linear_q4gsw.default":            {"self"},
	"et_vk.linear_qcs4w.default":            {"self"},
	"aten.linear.default":                   {"input"},
	"et_vk.linear_dq8ca_q4gsw.default":      {"input", "input_scales", "input_zp"},
	"torchao.choose_qparams_affine.default": {"input"},
	"sdpa_with_kv_cache.default":            {"query"},
	"et_vk.apply_rotary_emb.default":        {"xq"},
	"et_vk.apply_rotary_emb_hf.default":     {"xq"},
	"aten.view_copy.default":                {"self"},
	"aten.slice_copy.Tensor":                {"self"},
	"aten.split_with_sizes_copy.default":    {"self"},
}

// pointwise lists operators that work element by element. It maps each operator to the names of some of its
// arguments. To compute an element of the output, the operator reads only the same element of these
// arguments. Arguments may be broadcast.
var pointwise = func() map[string][]string {
	all := map[string][]string{
		"aten.pow.Tensor_Scalar":                   {"self"},
		"dim_order_ops._clone_dim_order.default":   {"self"},
		"dim_order_ops._to_dim_order_copy.default": {"self"},
	}
	for name := range strings.FieldsSeq("abs neg exp sqrt rsqrt tanh sin cos clamp hardtanh relu sigmoid gelu round " +
		"leaky_relu hardsigmoid hardswish clone alias_copy") {
		all["aten."+name+".default"] = []string{"self"}
	}
	for name := range strings.FieldsSeq("add.Tensor sub.Tensor mul.Tensor div.Tensor minimum.default " +
		"maximum.default") {
		all["aten."+name] = []string{"self", "other"}
	}
	return all
}()

// needed states which rows of a tensor later operators read.
type needed uint8

const (
	noRow needed = iota
	lastRow
	allRows
)

// addedID is the id of operators that are not in the file.
const addedID = math.MaxUint32

// narrowing is the state of lastRows.
type narrowing struct {
	from, to *vulkan.Graph
	selector uint32       // id of the file's operator that selects the last row, or addedID
	needs    []needed     // by value
	updated  map[int]bool // tensors that operators update in place
	cut      map[int]bool // tensors of which only the last row is computed
	last     map[int]int  // tensor -> tensor with its last row
	keeps    map[int]bool // tensors that have a row dim of size 1 in the result but no row dim in the file
	flat     map[int]int  // tensor in `keeps` -> tensor with the same elements and without the row dim
}

// lastRows returns a copy of the graph that does less work. If later operators read only the last token of a
// result, the copy computes only this token. In a file, the last layer computes all tokens, because
// exporters select the last token just before the logits. The copy selects it earlier, as the graphs that
// package arch builds do: for the queries of the last layer, and in the residual. The fusion rule `last`
// then removes these selections.
//
// The values of g keep their ids, and new values follow. If `onlyLast` is true, only the last row of the
// outputs is needed.
func lastRows(g *vulkan.Graph, onlyLast bool) *vulkan.Graph {
	n := &narrowing{
		selector: addedID,
		from:     g, to: &vulkan.Graph{
			Version: g.Version, Values: slices.Clone(g.Values), Inputs: g.Inputs,
			Outputs: slices.Clone(g.Outputs), Constants: g.Constants,
		},
		needs: make([]needed, len(g.Values)), updated: map[int]bool{}, cut: map[int]bool{},
		last: map[int]int{}, keeps: map[int]bool{}, flat: map[int]int{},
	}
	for i := range g.Operators {
		for _, id := range g.Updates(&g.Operators[i]) {
			n.updated[id] = true
		}
	}
	for _, id := range g.Outputs {
		n.needs[id] = allRows
		if onlyLast && n.rows(id) > 1 && len(n.tensor(id).Dims) == 3 {
			n.needs[id] = lastRow
		}
	}
	for i := len(g.Operators) - 1; i >= 0; i-- {
		n.look(&g.Operators[i])
	}
	for i := range g.Operators {
		n.add(&g.Operators[i])
	}
	for i, id := range g.Outputs {
		if n.keeps[id] && !onlyLast {
			n.to.Outputs[i] = n.flatOf(id)
		}
	}
	return n.to
}

// tensor returns a tensor of the file, or nil if the value is not a tensor that an operator computes.
func (n *narrowing) tensor(id int) *vulkan.Tensor {
	t, ok := n.from.Values[id].(*vulkan.Tensor)
	if !ok || t.Constant >= 0 || n.updated[id] {
		return nil
	}
	return t
}

// rows returns the maximum number of rows of a tensor. It returns 0 if the tensor has no rows: constants,
// mutable tensors, and tensors whose dim 0 is not 1.
func (n *narrowing) rows(id int) int {
	t := n.tensor(id)
	if t == nil || len(t.Dims) < 2 || t.Dims[0] != 1 {
		return 0
	}
	return t.Dims[1]
}

func (n *narrowing) arg(op *vulkan.Operator, name string) (at int, v vulkan.Value) {
	at = slices.Index(op.Arguments(), name)
	return at, n.from.Values[op.Args[at]]
}

// outputs returns the outputs that are computed from the arguments listed in rowWise or pointwise.
func (n *narrowing) outputs(op *vulkan.Operator) []int {
	out := op.Args[len(op.Args)-1]
	list, ok := n.from.Values[out].(vulkan.ValueList)
	switch {
	case !ok:
		return []int{out}
	case strings.HasPrefix(op.Name, "et_vk.apply_rotary_emb"):
		return list[:min(len(list), 1)] // the second output is computed from xk
	}
	return list
}

// selects reports whether the operator selects the last row of its first argument. If so, `keeps` reports
// whether the output still has the row dim, with size 1.
func (n *narrowing) selects(op *vulkan.Operator) (is, keeps bool) {
	keeps = op.Name == "aten.slice_copy.Tensor"
	if !keeps && op.Name != "aten.select_copy.int" || !op.Known() || n.rows(op.Args[0]) < 1 {
		return false, false
	}
	x, out := n.tensor(op.Args[0]), n.tensor(op.Args[len(op.Args)-1])
	if out == nil || len(out.Dims) < 2 || out.Dims[0] != 1 {
		return false, false
	}
	isInt := func(name string, want func(int64) bool) bool {
		_, v := n.arg(op, name)
		i, ok := integer(v)
		return ok && want(i)
	}
	is = isInt("dim", func(i int64) bool { return i == 1 || i == int64(1-len(x.Dims)) })
	isLast := func(i int64) bool { return i == -1 }
	if !keeps {
		return is && len(x.Dims) > 2 && isInt("index", isLast), false
	}
	_, end := n.arg(op, "end")
	toEnd := end == nil || isInt("end", func(i int64) bool { return i >= int64(x.Dims[1]) })
	return is && toEnd && isInt("start", isLast) && isInt("step", func(i int64) bool { return i == 1 }), true
}

// look records which rows of its arguments an operator needs. It must be called for all later operators
// first.
func (n *narrowing) look(op *vulkan.Operator) {
	need := func(id int, by needed) { n.needs[id] = max(n.needs[id], by) }
	if is, _ := n.selects(op); is {
		n.selector = op.ID
		need(op.Args[0], lastRow)
		return
	}
	rows := n.narrows(op)
	for at, id := range op.Args[:len(op.Args)-1] {
		switch list, isList := n.from.Values[id].(vulkan.ValueList); {
		case isList:
			for _, id := range list {
				need(id, allRows)
			}
		case slices.Contains(rows, at):
			need(id, lastRow)
		default:
			need(id, allRows)
		}
	}
	if rows != nil {
		for _, id := range n.outputs(op) {
			n.cut[id] = true
		}
	}
}

// narrows returns the indices of the arguments of which the operator needs only the last row. It returns nil
// if the operator has to compute all rows.
func (n *narrowing) narrows(op *vulkan.Operator) (at []int) {
	names, elementwise := rowWise[op.Name], false
	if names == nil {
		names, elementwise = pointwise[op.Name], true
	}
	if names == nil || !op.Known() {
		return nil
	}
	rows, rank, needs := 0, 0, noRow
	for _, id := range n.outputs(op) {
		if rows = n.rows(id); rows < 2 {
			return nil
		}
		rank, needs = len(n.tensor(id).Dims), max(needs, n.needs[id])
	}
	if needs != lastRow {
		return nil
	}
	for _, name := range names {
		k, v := n.arg(op, name)
		t, ok := v.(*vulkan.Tensor)
		if !ok {
			return nil
		}
		row := len(t.Dims) - rank + 1 // with elementwise: the dim that corresponds to dim 1 of the output
		switch {
		case elementwise && (row < 0 || row < len(t.Dims) && t.Dims[row] == 1): // the operand is broadcast
		case elementwise && row != 1, n.rows(op.Args[k]) != rows:
			return nil
		default:
			at = append(at, k)
		}
	}
	if elementwise {
		return at
	}
	_, x := n.arg(op, names[0])
	if rank = len(x.(*vulkan.Tensor).Dims); rank < 3 { // there is no row dim: dim 1 has the elements
		return nil
	}
	switch op.Name {
	case "aten.view_copy.default":
		if !n.keepsRows(op) {
			return nil
		}
	case "aten.slice_copy.Tensor", "aten.split_with_sizes_copy.default":
		_, dim := n.arg(op, "dim")
		i, ok := integer(dim)
		if i < 0 {
			i += int64(rank)
		}
		if !ok || i < 2 {
			return nil
		}
	}
	return at
}

// keepsRows reports whether a view has the same row dim as its argument and changes only the dims after the
// row dim.
func (n *narrowing) keepsRows(op *vulkan.Operator) bool {
	_, v := n.arg(op, "size")
	var size []int64
	switch v := v.(type) {
	case []int64:
		size = v
	case vulkan.ValueList:
		for _, id := range v {
			i, _ := n.from.Values[id].(int64) // 0 for a SymInt
			size = append(size, i)
		}
	}
	out := n.tensor(op.Args[len(op.Args)-1])
	if len(size) != len(out.Dims) {
		return false
	}
	for k, want := range out.Dims {
		if k != 1 && size[k] != int64(want) {
			return false
		}
	}
	return true
}

// add adds an operator of the file to the result.
func (n *narrowing) add(op *vulkan.Operator) {
	args := slices.Clone(op.Args)
	out := args[len(args)-1]
	is, keeps := n.selects(op)
	rows := n.narrows(op)
	if !is && rows == nil && n.keepsDim(op) {
		n.widen(out)
	} else {
		n.flatten(args[:len(args)-1])
	}
	if is {
		if !keeps {
			n.widen(out)
		}
		n.slice(args[0], out)
		return
	}
	for _, k := range rows {
		if !n.cut[args[k]] {
			args[k] = n.lastOf(args[k])
		}
	}
	if rows != nil {
		for _, id := range n.outputs(op) {
			n.reshape(id, oneRow)
		}
	}
	if rows != nil && op.Name == "aten.view_copy.default" {
		k, _ := n.arg(op, "size")
		args[k] = n.size(n.to.Values[out].(*vulkan.Tensor).Dims)
	}
	n.to.Operators = append(n.to.Operators, vulkan.Operator{ID: op.ID, Name: op.Name, Args: args})
}

func oneRow(dims []int) []int {
	dims[1] = 1
	return dims
}

// size adds the dims of a view as a value.
func (n *narrowing) size(dims []int) int {
	var size []int64
	for _, d := range dims {
		size = append(size, int64(d))
	}
	return n.value(size)
}

// value adds a value to the result and returns its id.
func (n *narrowing) value(v vulkan.Value) int {
	n.to.Values = append(n.to.Values, v)
	return len(n.to.Values) - 1
}

// reshape changes the dims of a tensor of the result.
func (n *narrowing) reshape(id int, change func(dims []int) []int) {
	t := *n.to.Values[id].(*vulkan.Tensor)
	t.Dims = change(slices.Clone(t.Dims))
	n.to.Values[id] = &t
}

// slice adds an operator that selects the last row of x. The new operator gets the id n.selector.
func (n *narrowing) slice(x, out int) {
	dim, start, end := n.value(int64(1)), n.value(int64(-1)), n.value(int64(math.MaxInt64))
	n.to.Operators = append(n.to.Operators, vulkan.Operator{
		ID: n.selector, Name: "aten.slice_copy.Tensor",
		Args: []int{x, dim, start, end, n.value(int64(1)), out},
	})
}

func (n *narrowing) lastOf(x int) int {
	out, ok := n.last[x]
	if !ok {
		out = n.value(n.to.Values[x])
		n.reshape(out, oneRow)
		n.slice(x, out)
		n.last[x] = out
	}
	return out
}

// keepsDim reports whether the operator has arguments with an added row dim and can use them as they are. Its
// output then also has an added row dim. Only operators on single elements or along the last dim can do this.
func (n *narrowing) keepsDim(op *vulkan.Operator) bool {
	names := pointwise[op.Name]
	switch op.Name {
	case "et_vk.rms_norm.default", "et_vk.linear_q4gsw.default", "et_vk.linear_qcs4w.default",
		"aten.linear.default":
		names = rowWise[op.Name]
	}
	out := n.tensor(op.Args[len(op.Args)-1])
	if names == nil || !op.Known() || out == nil || len(out.Dims) < 2 || out.Dims[0] != 1 {
		return false
	}
	some := false
	for _, name := range names {
		k, v := n.arg(op, name)
		t, ok := v.(*vulkan.Tensor)
		switch {
		case !ok:
			return false
		case n.keeps[op.Args[k]]:
			some = true
		case len(t.Dims) > 1 || t.Constant < 0:
			return false
		}
	}
	return some
}

// widen adds a row dim of size 1 to a tensor.
func (n *narrowing) widen(id int) {
	n.keeps[id] = true
	n.reshape(id, func(dims []int) []int { return slices.Insert(dims, 1, 1) })
}

// flatten changes args: it replaces each tensor with an added row dim by a view without this dim.
func (n *narrowing) flatten(args []int) {
	for k, id := range args {
		if list, ok := n.from.Values[id].(vulkan.ValueList); ok {
			if slices.ContainsFunc(list, func(id int) bool { return n.keeps[id] }) {
				list = slices.Clone(list)
				n.flatten(list)
				args[k] = n.value(list)
			}
		} else if n.keeps[id] {
			args[k] = n.flatOf(id)
		}
	}
}

// flatOf returns a view of x without its added row dim. The view has the shape that the file states for x.
func (n *narrowing) flatOf(x int) int {
	out, ok := n.flat[x]
	if !ok {
		t := n.from.Values[x].(*vulkan.Tensor)
		out = n.value(t)
		n.flat[x] = out
		n.to.Operators = append(n.to.Operators, vulkan.Operator{
			ID: addedID, Name: "aten.view_copy.default", Args: []int{x, n.size(t.Dims), out},
		})
	}
	return out
}
