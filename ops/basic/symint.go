package basic

import (
	"slices"

	"gpuscope/engine/graph"
	"gpuscope/ops/internal/shape"
	"gpuscope/ops/kind"
	"gpuscope/ops/reference"
)

// The operators on SymInts have no dispatches: their plans compute integers. The ranges of their outputs are
// derived from their corners.

// SymSize adds sym_size, which returns the size of dim `axis` of x in the current step, as a SymInt.
func SymSize(b *graph.Builder, name string, x graph.ValueID, axis int) graph.ValueID {
	return kindSymSize.BuildOne(b, name, kind.Args{"x": x, "dim": axis})
}

var kindSymSize = kind.Kind{
	Name: "sym_size", Doc: "Returns the size of a dim of x in the current step, as a SymInt.",
	Args: []kind.Arg{kind.Required("x", kind.AnyTensor), kind.Required("dim", kind.IntType)}, Constructors: []string{"SymSize"},
	Add: func(c *kind.Call) []graph.ValueID {
		x := c.ArgTensor("x")
		axis, ok := c.Axis(x, c.ArgInt("dim"))
		if !ok {
			return nil
		}
		o := &symSize{x: x, y: c.SymIntOut(c.OpName), axis: axis}
		return c.AddOp(o, o.y)
	},
}

type symSize struct {
	reference.Moves
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

func (o *symSize) Reference(r *reference.Ref) { r.SetInt(o.y, int64(r.Tensor(o.x).Dims[o.axis])) }

// SelectAsSymInt adds select_as_symint, which reads an element of a graph input on the host, before the step.
// The output is a SymInt. `at` has the index of the element in each dim; a negative index counts from the
// end. The graph is built for values from lo to hi; planning fails for any other value.
//
//	x  any dims, i32
func SelectAsSymInt(b *graph.Builder, name string, x graph.ValueID, at []int, lo, hi int64) graph.ValueID {
	return kindSelectAsSymInt.BuildOne(b, name, kind.Args{"x": x, "at": at, "lowest": lo, "highest": hi})
}

var kindSelectAsSymInt = kind.Kind{
	Name: "select_as_symint", Doc: "Reads an element of a graph input as a SymInt. The host reads it before the step.",
	Args: []kind.Arg{
		kind.Required("x", kind.I32Tensor),
		kind.Required("at", kind.IntsType),
		kind.Required("lowest", kind.IntType),
		kind.Required("highest", kind.IntType),
	},
	Constructors: []string{"SelectAsSymInt"}, Add: addSelectAsSymInt,
}

func addSelectAsSymInt(c *kind.Call) []graph.ValueID {
	x, lo, hi := c.ArgTensor("x"), int64(c.ArgInt("lowest")), int64(c.ArgInt("highest"))
	at := slices.Clone(c.ArgInts("at"))
	switch dims := c.MaxDims(x); {
	case len(at) != len(dims):
		return c.Fail("x has dims %v, but there are %d indices; want one index for each dim", dims, len(at))
	case lo > hi || lo < -1<<31 || hi >= 1<<31:
		return c.Fail("the range from %d to %d is empty or contains integers that do not fit in 32 bits",
			lo, hi)
	}
	o := &selectAsSymInt{x: x, y: c.SymIntOut(c.OpName), at: at, lo: lo, hi: hi}
	return c.AddOp(o, o.y)
}

type selectAsSymInt struct {
	reference.Moves
	x, y   graph.ValueID
	at     []int
	lo, hi int64
}

func (o *selectAsSymInt) Spec() graph.Spec {
	return graph.Spec{
		Kind: "select_as_symint", Inputs: []graph.ValueID{o.x}, Outputs: []graph.ValueID{o.y},
		Attrs: map[string]any{"at": o.at},
	}
}

// Corners returns two corners. The element that becomes the SymInt is lo in the first corner, and hi in the
// second.
func (o *selectAsSymInt) Corners(r *graph.Ranges) []graph.Corner {
	dims := r.Max(o.x)
	at, ok := o.place(dims)
	if !ok {
		return r.Ends(o.x) // planning reports the error
	}
	corner := func(n int64) graph.Corner {
		host := make([]int64, shape.Product(dims))
		host[at] = n
		return graph.Corner{{Value: o.x, Dims: dims, Host: host}}
	}
	return []graph.Corner{corner(o.lo), corner(o.hi)}
}

func (o *selectAsSymInt) Plan(p *graph.Planner) error {
	dims, host := p.Dims(o.x), p.HostInts(o.x)
	at, ok := o.place(dims)
	if !ok {
		return p.Errorf("the indices %v are out of range for dims %v", o.at, dims)
	}
	if at >= len(host) {
		return p.Errorf("the host passed only %d integers for an input with dims %v", len(host), dims)
	}
	if v := host[at]; v < o.lo || v > o.hi {
		return p.Errorf("element %d has the value %d, want %d to %d", at, v, o.lo, o.hi)
	}
	p.SetInt(o.y, host[at])
	return nil
}

// place returns the index, in row-major order, of the element that becomes the SymInt. `ok` is false if x has
// no such element.
func (o *selectAsSymInt) place(dims []int) (at int, ok bool) {
	for k, i := range o.at {
		if i < 0 {
			i += dims[k]
		}
		if i < 0 || i >= dims[k] {
			return 0, false
		}
		at = at*dims[k] + i
	}
	return at, true
}

func (o *selectAsSymInt) Reference(r *reference.Ref) {
	at, _ := o.place(r.Tensor(o.x).Dims)
	r.SetInt(o.y, r.HostInts(o.x)[at])
}

// SymBinaries lists the operators on two SymInts.
var SymBinaries = []symBinaryRow{
	{Kind: "sym_add", of: "SymAdd", doc: "a + b, as a SymInt.", f: func(a, b int64) int64 { return a + b }},
	{
		Kind: "sym_floordiv", of: "SymFloorDiv", doc: "a / b, rounded towards minus infinity, as a SymInt.",
		f: floorDiv,
	},
	{Kind: "sym_mul", of: "SymMul", doc: "a * b, as a SymInt.", f: func(a, b int64) int64 { return a * b }},
	{Kind: "sym_sub", of: "SymSub", doc: "a - b, as a SymInt.", f: func(a, b int64) int64 { return a - b }},
}

type symBinaryRow struct {
	Kind, of, doc string
	// f cannot overflow, because the operands fit in 32 bits.
	f func(a, b int64) int64
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 && a < 0 != (b < 0) {
		q--
	}
	return q
}

var kindsOfSymBinaries = kind.Each(SymBinaries, func(r *symBinaryRow) kind.Kind {
	return kind.Kind{
		Name: r.Kind, Doc: r.doc, Constructors: []string{r.of},
		Args: []kind.Arg{kind.Required("a", kind.SymIntType), kind.Required("b", kind.SymIntType)},
		Add: func(c *kind.Call) []graph.ValueID {
			o := &symBinary{symBinaryRow: r, a: c.ArgSym("a"), b: c.ArgSym("b"), y: c.SymIntOut(c.OpName)}
			return c.AddOp(o, o.y)
		},
	}
})

// SymAdd adds sym_add: x + y, as a SymInt.
func SymAdd(b *graph.Builder, name string, x, y kind.Int) graph.ValueID {
	return member("sym_add").BuildOne(b, name, kind.Args{"a": x, "b": y})
}

// SymFloorDiv adds sym_floordiv: x / y rounded towards minus infinity, as a SymInt. If y is 0, planning
// fails.
func SymFloorDiv(b *graph.Builder, name string, x, y kind.Int) graph.ValueID {
	return member("sym_floordiv").BuildOne(b, name, kind.Args{"a": x, "b": y})
}

// SymMul adds sym_mul: x * y, as a SymInt.
func SymMul(b *graph.Builder, name string, x, y kind.Int) graph.ValueID {
	return member("sym_mul").BuildOne(b, name, kind.Args{"a": x, "b": y})
}

// SymSub adds sym_sub: x - y, as a SymInt.
func SymSub(b *graph.Builder, name string, x, y kind.Int) graph.ValueID {
	return member("sym_sub").BuildOne(b, name, kind.Args{"a": x, "b": y})
}

type symBinary struct {
	reference.Moves
	*symBinaryRow
	a, b kind.Int
	y    graph.ValueID
}

func (o *symBinary) Spec() graph.Spec {
	return graph.Spec{
		Kind: o.Kind, Inputs: kind.Operands(nil, o.a, o.b), Outputs: []graph.ValueID{o.y},
		Attrs: map[string]any{"a": o.a.Attr(), "b": o.b.Attr()},
	}
}

// Corners returns all corners at which the result could be smallest or largest. Usually each operand then has
// its smallest or its largest value. A quotient can also be smallest or largest when the divisor is 1 or -1.
func (o *symBinary) Corners(r *graph.Ranges) []graph.Corner {
	alo, ahi := o.a.Span(r)
	blo, bhi := o.b.Span(r)
	var list []graph.Corner
	for _, a := range []int{alo, ahi, 0} {
		for _, b := range []int{blo, bhi, -1, 1} {
			inside := a >= alo && a <= ahi && b >= blo && b <= bhi
			if !inside || o.a.IsSym && o.a == o.b && a != b || o.Kind == "sym_floordiv" && b == 0 {
				continue
			}
			list = append(list, slices.Concat(o.a.Set(a), o.b.Set(b)))
		}
	}
	if len(list) == 0 {
		// No combination of values is legal. Planning will report the error.
		list = r.Ends(kind.Operands(nil, o.a, o.b)...)
	}
	return list
}

func (o *symBinary) Plan(p *graph.Planner) error {
	a, b := o.a.At(p), o.b.At(p)
	if o.Kind == "sym_floordiv" && b == 0 {
		return p.Errorf("division of %d by zero", a)
	}
	n := o.f(int64(a), int64(b))
	if n < -1<<31 || n >= 1<<31 {
		return p.Errorf("the result of %s for %d and %d is %d, which does not fit in 32 bits",
			o.Kind, a, b, n)
	}
	p.SetInt(o.y, n)
	return nil
}

func (o *symBinary) Reference(r *reference.Ref) {
	r.SetInt(o.y, o.f(int64(o.a.In(r)), int64(o.b.In(r))))
}
