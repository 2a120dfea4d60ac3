package ops

import (
	"slices"

	"gpuscope/engine/graph"
)

// The operators on SymInts have no dispatches: their plans give integers. The ranges of what they give follow
// from their corners.

// SymSize adds sym_size: the live size of a dim of x, as a SymInt.
func SymSize(b *graph.Builder, name string, x graph.ValueID, axis int) graph.ValueID {
	return kindSymSize.one(b, name, Args{"x": x, "dim": axis})
}

var kindSymSize = Kind{
	Name: "sym_size", Doc: "The live size of a dim of x, as a SymInt.",
	Args: []Arg{{"x", anyTensor, nil}, {"dim", intType, nil}}, Constructors: []string{"SymSize"},
	add: func(c *call) []graph.ValueID {
		x := c.tensor("x")
		axis, ok := c.axis(x, c.int("dim"))
		if !ok {
			return nil
		}
		o := &symSize{x: x, y: c.SymIntOut(c.name), axis: axis}
		return c.adds(o, o.y)
	},
}

type symSize struct {
	moves
	x, y graph.ValueID
	axis int
}

func (o *symSize) Spec() graph.Spec {
	return graph.Spec{
		Kind: "sym_size", Inputs: []graph.ValueID{o.x}, Outputs: []graph.ValueID{o.y},
		Attrs: map[string]any{"dim": o.axis},
	}
}

func (o *symSize) Corners(r *graph.Ranges) []graph.Corner { return r.Ends(o.x) }

func (o *symSize) Plan(p *graph.Planner) error {
	p.SetInt(o.y, int64(p.Dim(o.x, o.axis)))
	return nil
}

func (o *symSize) Reference(r *Ref) { r.SetInt(o.y, int64(r.Tensor(o.x).Dims[o.axis])) }

// SelectAsSymInt adds select_as_symint: the element of a graph input at index of dim axis and at 0 of all
// others, as a SymInt that is known on the host before the step. Negative axes and indices count from the
// end. A value outside of lo to hi, which the graph is built for, is refused.
//
//	x  any dims, i32
func SelectAsSymInt(b *graph.Builder, name string, x graph.ValueID, axis, index int, lo,
	hi int64,
) graph.ValueID {
	return kindSelectAsSymInt.one(b, name,
		Args{"x": x, "dim": axis, "index": index, "lowest": lo, "highest": hi})
}

var kindSelectAsSymInt = Kind{
	Name: "select_as_symint", Doc: "An element of a graph input, as a SymInt that is known before the step.",
	Args: []Arg{
		{"x", i32Tensor, nil},
		{"dim", intType, nil},
		{"index", intType, nil},
		{"lowest", intType, nil},
		{"highest", intType, nil},
	},
	Constructors: []string{"SelectAsSymInt"}, add: addSelectAsSymInt,
}

func addSelectAsSymInt(c *call) []graph.ValueID {
	x, lo, hi := c.tensor("x"), int64(c.int("lowest")), int64(c.int("highest"))
	axis, ok := c.axis(x, c.int("dim"))
	switch {
	case !ok:
		return nil
	case lo > hi || lo < -1<<31 || hi >= 1<<31:
		return c.fail("range %d to %d, want one within 32 bits", lo, hi)
	}
	o := &selectAsSymInt{x: x, y: c.SymIntOut(c.name), axis: axis, index: c.int("index"), lo: lo, hi: hi}
	return c.adds(o, o.y)
}

type selectAsSymInt struct {
	moves
	x, y        graph.ValueID
	axis, index int
	lo, hi      int64
}

func (o *selectAsSymInt) Spec() graph.Spec {
	return graph.Spec{
		Kind: "select_as_symint", Inputs: []graph.ValueID{o.x}, Outputs: []graph.ValueID{o.y},
		Attrs: map[string]any{"dim": o.axis, "index": o.index},
	}
}

// Corners: the element is the smallest, and the largest.
func (o *selectAsSymInt) Corners(r *graph.Ranges) []graph.Corner {
	dims := r.Max(o.x)
	at, ok := o.place(dims)
	if !ok {
		return r.Ends(o.x) // the plan says so
	}
	corner := func(n int64) graph.Corner {
		host := make([]int64, product(dims))
		host[at] = n
		return graph.Corner{{Value: o.x, Dims: dims, Host: host}}
	}
	return []graph.Corner{corner(o.lo), corner(o.hi)}
}

func (o *selectAsSymInt) Plan(p *graph.Planner) error {
	dims, host := p.Dims(o.x), p.HostInts(o.x)
	at, ok := o.place(dims)
	if !ok {
		return p.Errorf("index %d of dim %d of %v", o.index, o.axis, dims)
	}
	if at >= len(host) {
		return p.Errorf("the host gave %d integers for %v", len(host), dims)
	}
	if v := host[at]; v < o.lo || v > o.hi {
		return p.Errorf("element %d is %d, want %d to %d", at, v, o.lo, o.hi)
	}
	p.SetInt(o.y, host[at])
	return nil
}

// place is the index of the element in row-major order.
func (o *selectAsSymInt) place(dims []int) (at int, ok bool) {
	i := o.index
	if i < 0 {
		i += dims[o.axis]
	}
	return i * product(dims[o.axis+1:]), i >= 0 && i < dims[o.axis]
}

func (o *selectAsSymInt) Reference(r *Ref) {
	at, _ := o.place(r.Tensor(o.x).Dims)
	r.SetInt(o.y, r.HostInts(o.x)[at])
}

// symBinaries are the family of operators on two SymInts, a row each.
var symBinaries = []symBinaryRow{
	{kind: "sym_add", of: "SymAdd", doc: "a + b, as a SymInt.", f: func(a, b int64) int64 { return a + b }},
	{
		kind: "sym_floordiv", of: "SymFloorDiv", doc: "a / b rounded to minus infinity, as a SymInt.",
		f: floorDiv,
	},
	{kind: "sym_mul", of: "SymMul", doc: "a * b, as a SymInt.", f: func(a, b int64) int64 { return a * b }},
	{kind: "sym_sub", of: "SymSub", doc: "a - b, as a SymInt.", f: func(a, b int64) int64 { return a - b }},
}

type symBinaryRow struct {
	kind, of, doc string
	// f fits 64 bits, since the operands fit 32.
	f func(a, b int64) int64
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 && a < 0 != (b < 0) {
		q--
	}
	return q
}

var kindsOfSymBinaries = eachKind(symBinaries, func(r *symBinaryRow) Kind {
	return Kind{
		Name: r.kind, Doc: r.doc, Constructors: []string{r.of},
		Args: []Arg{{"a", symIntType, nil}, {"b", symIntType, nil}},
		add: func(c *call) []graph.ValueID {
			o := &symBinary{symBinaryRow: r, a: c.sym("a"), b: c.sym("b"), y: c.SymIntOut(c.name)}
			return c.adds(o, o.y)
		},
	}
})

// SymAdd adds sym_add: x + y, as a SymInt.
func SymAdd(b *graph.Builder, name string, x, y Int) graph.ValueID {
	return KindOf("sym_add").one(b, name, Args{"a": x, "b": y})
}

// SymFloorDiv adds sym_floordiv: x / y rounded to minus infinity, as a SymInt. A y of 0 is refused.
func SymFloorDiv(b *graph.Builder, name string, x, y Int) graph.ValueID {
	return KindOf("sym_floordiv").one(b, name, Args{"a": x, "b": y})
}

// SymMul adds sym_mul: x * y, as a SymInt.
func SymMul(b *graph.Builder, name string, x, y Int) graph.ValueID {
	return KindOf("sym_mul").one(b, name, Args{"a": x, "b": y})
}

// SymSub adds sym_sub: x - y, as a SymInt.
func SymSub(b *graph.Builder, name string, x, y Int) graph.ValueID {
	return KindOf("sym_sub").one(b, name, Args{"a": x, "b": y})
}

type symBinary struct {
	moves
	*symBinaryRow
	a, b Int
	y    graph.ValueID
}

func (o *symBinary) Spec() graph.Spec {
	return graph.Spec{
		Kind: o.kind, Inputs: args(nil, o.a, o.b), Outputs: []graph.ValueID{o.y},
		Attrs: map[string]any{"a": o.a.attr(), "b": o.b.attr()},
	}
}

// Corners: the results are at their ends where the operands are, and a quotient also next to a divisor of 0.
func (o *symBinary) Corners(r *graph.Ranges) []graph.Corner {
	alo, ahi := o.a.span(r)
	blo, bhi := o.b.span(r)
	var list []graph.Corner
	for _, a := range []int{alo, ahi, 0} {
		for _, b := range []int{blo, bhi, -1, 1} {
			inside := a >= alo && a <= ahi && b >= blo && b <= bhi
			if !inside || o.a.isSym && o.a == o.b && a != b || o.kind == "sym_floordiv" && b == 0 {
				continue
			}
			list = append(list, slices.Concat(o.a.set(a), o.b.set(b)))
		}
	}
	if len(list) == 0 {
		list = r.Ends(args(nil, o.a, o.b)...) // no live point is legal; the plan says so
	}
	return list
}

func (o *symBinary) Plan(p *graph.Planner) error {
	a, b := o.a.at(p), o.b.at(p)
	if o.kind == "sym_floordiv" && b == 0 {
		return p.Errorf("%d over 0", a)
	}
	n := o.f(int64(a), int64(b))
	if n < -1<<31 || n >= 1<<31 {
		return p.Errorf("%s of %d and %d is %d, which does not fit 32 bits", o.kind, a, b, n)
	}
	p.SetInt(o.y, n)
	return nil
}

func (o *symBinary) Reference(r *Ref) {
	r.SetInt(o.y, o.f(int64(o.a.in(r)), int64(o.b.in(r))))
}
