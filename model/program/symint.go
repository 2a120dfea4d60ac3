package program

import (
	"math"

	"gpuscope/model/checkpoint/pte/vulkan"
	"gpuscope/ops/basic"
	"gpuscope/ops/kind"
)

// symSize implements sym_size.int, which returns the size that a dim has in this run.
func symSize(c *call) {
	x := c.tensor("self")
	c.giveInt(c.dim(x, c.axis(x, c.int("dim"))))
}

// selectAsSymInt implements et_vk.select_as_symint, which returns an element of an input as an integer. The
// host reads the element.
func selectAsSymInt(c *call) {
	if id, _ := c.arg("x"); c.language != nil && id == c.position {
		if i := c.int("index"); c.int("dim") != 0 || i != 0 && i != -1 {
			c.refuse("index", "0 or -1, because the position has one element")
		}
		c.giveInt(kind.Sym(c.pos))
		return
	}
	x, axis := c.tensor("x"), c.int("dim")
	lo, hi := int64(math.MinInt32), int64(math.MaxInt32)
	if n, ok := c.limits[c.outputs()[0]]; ok { // limitPositions set a limit; the file has none
		lo, hi = 0, int64(n)-1
	}
	if c.Err() != nil {
		return
	}
	v := basic.SelectAsSymInt(c.Builder, c.name(), x, axis, c.int("index"), lo, hi)
	if c.Err() == nil {
		c.giveInt(kind.Sym(v))
	}
}

// limitPositions finds the SymInts that an operator uses as an index into a cache, a table or a dim. It
// records for each how many positions it can take.
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

// symArithmetic returns the builder for an operator on two integers. If both are known, it computes the
// result f(a, b) at once.
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
