package program

import (
	"fmt"
	"math"
	"slices"

	"gpuscope/engine/graph"
	"gpuscope/model/checkpoint/pte/vulkan"
	"gpuscope/ops/basic"
	"gpuscope/ops/kind"
)

// symSize implements sym_size.int, which returns the size that a dim has in this run.
func symSize(c *call) {
	x := c.tensor("self")
	c.giveInt(c.dim(x, c.axis(x, c.int("dim"))))
}

// selectAsSymInt implements et_vk.select_as_symint, which returns an element of a tensor as an integer. For
// an input of the method, the host reads the element in each run. For a constant, the integer is already
// known when the graph is built.
func selectAsSymInt(c *call) {
	id, _ := c.arg("x")
	at := make([]int, len(c.fileTensor("x").Dims))
	axes, indices := c.intList("dim"), c.intList("index")
	if c.Err() == nil && len(axes) != len(indices) {
		c.refuse("index", fmt.Sprintf("an index for each of the %d dims", len(axes)))
	}
	for i, axis := range axes {
		if axis < 0 {
			axis += len(at)
		}
		if c.Err() == nil && (axis < 0 || axis >= len(at)) {
			c.refuse("dim", fmt.Sprintf("dims of x, which has rank %d", len(at)))
		}
		if c.Err() != nil {
			return
		}
		at[axis] = indices[i]
	}
	from, ok := c.trace(id, at)
	switch {
	case c.Err() != nil:
		return
	case !ok:
		c.refuse("x", "an input or a constant, possibly after select, slice, view or the addition of a "+
			"constant")
	case c.language != nil && from.of == c.position:
		if slices.ContainsFunc(from.at, func(i int) bool { return i != 0 && i != -1 }) {
			c.refuse("index", "0 or -1, because the position has one element")
			return
		}
		c.giveInt(c.plus(kind.Sym(c.pos), from.add))
	case c.g.Values[from.of].(*vulkan.Tensor).Constant >= 0:
		if n, ok := c.constantElement(from); ok {
			c.giveInt(kind.Fixed(clampInt(n + from.add)))
			return
		}
		c.refuse("x", "a constant of integers that contains the selected element")
	default:
		lo, hi := int64(math.MinInt32), int64(math.MaxInt32)
		if n, ok := c.limits[c.outputs()[0]]; ok { // limitPositions has set a limit; the file states none
			lo, hi = max(-from.add, lo), min(int64(n)-1-from.add, hi)
		}
		x := c.tensorOf(from.of)
		if c.Err() != nil {
			return
		}
		c.m.sizes[x] = append(c.m.sizes[x], elementRange{from.at, lo, hi})
		v := basic.SelectAsSymInt(c.Builder, c.name(), x, from.at, lo, hi)
		if c.Err() == nil {
			c.giveInt(c.plus(kind.Sym(v), from.add))
		}
	}
}

func (c *call) plus(a kind.Int, n int64) kind.Int {
	if n == 0 {
		return a
	}
	v := c.one("sym_add", kind.Args{"a": a, "b": kind.Fixed(clampInt(n))})
	if c.Err() != nil {
		return kind.Int{}
	}
	return kind.Sym(v)
}

// traced describes an integer as the sum of an element of a tensor and the number `add`.
type traced struct {
	of  int   // value of the file
	at  []int // index of the element in each dim; a negative index counts from the end
	add int64
}

// tracedThrough lists the operators through which trace can go back: copies of elements, and sums with a
// constant.
var tracedThrough = []string{
	"aten.select_copy.int", "aten.slice_copy.Tensor", "aten.view_copy.default", "aten.squeeze_copy.dims",
	"aten.unsqueeze_copy.default", "aten.add.Tensor", "aten.sub.Tensor", "aten.clone.default",
	"aten.alias_copy.default", "dim_order_ops._clone_dim_order.default",
	"dim_order_ops._to_dim_order_copy.default", "et_vk.prepack.default",
}

// trace follows an element of a tensor back to the input or the constant from which it comes. `ok` is false
// if the element is the result of another operator.
func (b *builder) trace(x int, at []int) (from traced, ok bool) {
	from = traced{of: x, at: slices.Clone(at)}
	for range len(b.g.Operators) + 1 {
		t, ok := b.g.Values[from.of].(*vulkan.Tensor)
		if !ok || len(t.Dims) != len(from.at) || b.mutable[from.of] {
			return from, false
		}
		if t.Constant >= 0 || slices.Contains(b.g.Inputs, from.of) {
			return from, true
		}
		op := b.producers[from.of]
		if op == nil || !op.Known() || !slices.Contains(tracedThrough, op.Name) || !b.step(op, &from) {
			return from, false
		}
	}
	return from, false
}

// step goes from an element of an operator's output to the element of the argument from which it comes.
func (b *builder) step(op *vulkan.Operator, e *traced) bool {
	out := e.of
	arg := func(k int) int64 {
		n, ok := integer(b.g.Values[op.Args[k]])
		if !ok {
			return math.MinInt64
		}
		return n
	}
	e.of = op.Args[0]
	x, ok := b.g.Values[e.of].(*vulkan.Tensor)
	if !ok {
		return false
	}
	dim := int(clampInt(arg(min(1, len(op.Args)-1))))
	if dim < 0 {
		dim += len(x.Dims)
	}
	switch op.Name {
	case "aten.select_copy.int":
		if dim < 0 || dim > len(e.at) || arg(2) == math.MinInt64 {
			return false
		}
		e.at = slices.Insert(e.at, dim, clampInt(arg(2)))
	case "aten.slice_copy.Tensor":
		start, step := arg(2), arg(4)
		if b.g.Values[op.Args[2]] == nil {
			start = 0
		}
		if dim < 0 || dim >= len(e.at) || start < 0 || step < 1 || e.at[dim] < 0 {
			return false
		}
		e.at[dim] = clampInt(start + int64(e.at[dim])*step)
	case "aten.view_copy.default", "aten.squeeze_copy.dims", "aten.unsqueeze_copy.default":
		if graph.Numel(x.Dims) != 1 || graph.Numel(b.g.Values[out].(*vulkan.Tensor).Dims) != 1 {
			return false
		}
		e.at = make([]int, len(x.Dims))
	case "aten.add.Tensor", "aten.sub.Tensor":
		return b.stepSum(op, e)
	}
	return true
}

// stepSum goes from the sum of an element and a constant to the element.
func (b *builder) stepSum(op *vulkan.Operator, e *traced) bool {
	alpha, ok := integer(b.g.Values[op.Args[2]])
	if !ok || alpha < math.MinInt16 || alpha > math.MaxInt16 {
		return false
	}
	if op.Name == "aten.sub.Tensor" {
		alpha = -alpha
	}
	for k, factor := range []int64{1, alpha} { // the constant may be the argument other or self
		other := op.Args[1-k]
		n, ok := b.constantNumber(other)
		x, isTensor := b.g.Values[op.Args[k]].(*vulkan.Tensor)
		if !ok || !isTensor || factor != 1 || len(x.Dims) != len(e.at) {
			continue
		}
		if k == 0 {
			n *= alpha
		}
		e.of, e.add = op.Args[k], e.add+n
		return e.add > math.MinInt32 && e.add <= math.MaxInt32
	}
	return false
}

// constantNumber returns a constant that is a single integer.
func (b *builder) constantNumber(id int) (n int64, ok bool) {
	if n, ok := integer(b.g.Values[id]); ok {
		return n, n >= math.MinInt32 && n <= math.MaxInt32
	}
	if op := b.producers[id]; op != nil && op.Name == "et_vk.prepack.default" {
		id = op.Args[0]
	}
	t, ok := b.g.Values[id].(*vulkan.Tensor)
	if !ok || graph.Numel(t.Dims) != 1 {
		return 0, false
	}
	return b.constantElement(traced{of: id, at: make([]int, len(t.Dims))})
}

// constantElement returns an element of a constant of integers.
func (b *builder) constantElement(e traced) (n int64, ok bool) {
	t, ok := b.g.Values[e.of].(*vulkan.Tensor)
	if !ok || t.Constant < 0 || b.mutable[e.of] || elements[t.Type].device != graph.I32 ||
		b.g.Constants[t.Constant].Missing != nil {
		return 0, false
	}
	index := 0
	for k, i := range e.at {
		if i < 0 {
			i += t.Dims[k]
		}
		if i < 0 || i >= t.Dims[k] {
			return 0, false
		}
		index = index*t.Dims[k] + i
	}
	data, err := b.g.Constants[t.Constant].Data.Bytes()
	if err != nil || int64(len(data)) < t.Bytes() {
		return 0, false
	}
	bits, ok := elements[t.Type].read(data[index*elements[t.Type].numpy.Size():])
	return int64(int32(bits)), ok
}

// offset returns the constant that the file adds to an input's element to get a SymInt. It returns 0 for
// SymInts that do not come from select_as_symint.
func (b *builder) offset(id int) int {
	op := b.producers[id]
	if op == nil || op.Name != "et_vk.select_as_symint.default" || !op.Known() {
		return 0
	}
	x, ok := b.g.Values[op.Args[0]].(*vulkan.Tensor)
	if !ok {
		return 0
	}
	from, ok := b.trace(op.Args[0], make([]int, len(x.Dims)))
	if !ok {
		return 0
	}
	return int(from.add)
}

// findHostOnly finds the operators whose results are used only for SymInts. The host computes these SymInts,
// so the graph of the engine does not contain these operators.
func (b *builder) findHostOnly() {
	reads := map[int]bool{} // values that the device reads
	some := map[int]bool{}  // values that an operator reads
	for _, id := range b.g.Outputs {
		reads[id] = true
	}
	for i := len(b.g.Operators) - 1; i >= 0; i-- {
		op := &b.g.Operators[i]
		out := op.Args[len(op.Args)-1]
		t, ok := b.g.Values[out].(*vulkan.Tensor)
		host := op.Name == "et_vk.select_as_symint.default"
		if ok && some[out] && !reads[out] && slices.Contains(tracedThrough, op.Name) && !b.mutable[out] &&
			elements[t.Type].device == graph.I32 {
			host = true
			b.hostOnly[op] = true
		}
		for _, id := range b.g.Reads(op) {
			some[id] = true
			reads[id] = reads[id] || !host
		}
	}
}

// limitPositions finds the SymInts that an operator uses as an index into a cache, a table or a dim, and
// records the number of valid indices for each.
func (b *builder) limitPositions(op *vulkan.Operator) {
	of, axis, by := "", 0, "start_pos"
	switch op.Name {
	case "sdpa_with_kv_cache.default":
		of, axis = "key_cache", 1
	case "update_cache.default":
		of, axis = "cache", 1
	case "et_vk.apply_rotary_emb_hf.default":
		of = "freqs_cos"
	case "aten.slice_copy.Tensor":
		of, by = "self", "start"
	default:
		return
	}
	if !op.Known() {
		return
	}
	c := call{builder: b, op: op, names: op.Arguments()}
	_, table := c.arg(of)
	t, ok := table.(*vulkan.Tensor)
	if !ok {
		return
	}
	if by == "start" {
		_, dim := c.arg("dim")
		n, _ := integer(dim)
		if axis = int(n); n < 0 {
			axis += len(t.Dims)
		}
	}
	id, v := c.arg(by)
	if _, is := v.(vulkan.SymInt); !is || axis < 0 || axis >= len(t.Dims) {
		return
	}
	if n, ok := b.limits[id]; !ok || t.Dims[axis] < n {
		b.limits[id] = max(t.Dims[axis], 1)
	}
}

// symArithmetic returns the builder for an operator on two integers. If both integers are known when the
// graph is built, the builder computes the result f(a, b) and adds no operator.
func symArithmetic(kindName string, f func(a, b int64) int64) func(c *call) {
	return func(c *call) {
		a, b := c.sym("a"), c.sym("b")
		if c.Err() != nil {
			return
		}
		if !a.IsSym && !b.IsSym && (kindName != "sym_floordiv" || b.Fixed != 0) {
			c.giveInt(kind.Fixed(clampInt(f(int64(a.Fixed), int64(b.Fixed)))))
			return
		}
		v := c.one(kindName, kind.Args{"a": a, "b": b})
		if c.Err() != nil {
			return
		}
		c.giveInt(kind.Sym(v))
		if kindName == "sym_add" {
			c.m.values[c.outputs()[0]].sum = [2]kind.Int{a, b}
		}
	}
}

func symNeg(c *call) {
	a := c.sym("a")
	if c.Err() != nil {
		return
	}
	if !a.IsSym {
		c.giveInt(kind.Fixed(-a.Fixed))
		return
	}
	if v := c.one("sym_sub", kind.Args{"a": kind.Fixed(0), "b": a}); c.Err() == nil {
		c.giveInt(kind.Sym(v))
	}
}

// floorDiv divides and rounds towards minus infinity.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 && a < 0 != (b < 0) {
		q--
	}
	return q
}
