package ops

import (
	"slices"

	"gpuscope/engine"
)

// The operators on SymInts have no dispatches: their plans give integers. The ranges of what they give follow
// from their corners.

// SymSize adds sym_size: the live size of a dim of x, as a SymInt.
func SymSize(b *engine.Builder, name string, x engine.ValueID, axis int) engine.ValueID {
	if !ready(b, x) {
		return engine.None
	}
	axis, ok := axisOf(b, name, x, axis)
	if !ok {
		return engine.None
	}
	o := &symSize{x: x, y: b.SymIntOut(name), axis: axis}
	b.Add(name, o)
	return o.y
}

type symSize struct {
	x, y engine.ValueID
	axis int
}

func (o *symSize) Spec() engine.Spec {
	return engine.Spec{
		Kind: "sym_size", Inputs: []engine.ValueID{o.x}, Outputs: []engine.ValueID{o.y},
		Attrs: map[string]any{"dim": o.axis},
	}
}

func (o *symSize) Corners(r *engine.Ranges) []engine.Corner { return r.Ends(o.x) }

func (o *symSize) Plan(p *engine.Planner) error {
	p.SetInt(o.y, int64(p.Dim(o.x, o.axis)))
	return nil
}

func (o *symSize) Reference(r *Ref) { r.SetInt(o.y, int64(r.Tensor(o.x).Dims[o.axis])) }

// SelectAsSymInt adds select_as_symint: the element of a graph input at index of dim axis and at 0 of all
// others, as a SymInt that is known on the host before the step. Negative axes and indices count from the
// end. A value outside of lo to hi, which the graph is built for, is refused.
//
//	x  any dims, i32
func SelectAsSymInt(b *engine.Builder, name string, x engine.ValueID, axis, index int, lo,
	hi int64,
) engine.ValueID {
	if !ready(b, x) {
		return engine.None
	}
	axis, ok := axisOf(b, name, x, axis)
	switch {
	case !ok:
		return engine.None
	case b.DType(x) != engine.I32:
		b.Errorf("%s: %s is %s, want i32", name, b.Name(x), b.DType(x))
		return engine.None
	case lo > hi || lo < -1<<31 || hi >= 1<<31:
		b.Errorf("%s: range %d to %d, want one within 32 bits", name, lo, hi)
		return engine.None
	}
	o := &selectAsSymInt{x: x, y: b.SymIntOut(name), axis: axis, index: index, lo: lo, hi: hi}
	b.Add(name, o)
	return o.y
}

type selectAsSymInt struct {
	x, y        engine.ValueID
	axis, index int
	lo, hi      int64
}

func (o *selectAsSymInt) Spec() engine.Spec {
	return engine.Spec{
		Kind: "select_as_symint", Inputs: []engine.ValueID{o.x}, Outputs: []engine.ValueID{o.y},
		Attrs: map[string]any{"dim": o.axis, "index": o.index},
	}
}

// Corners: the element is the smallest, and the largest.
func (o *selectAsSymInt) Corners(r *engine.Ranges) []engine.Corner {
	dims := r.Max(o.x)
	at, ok := o.place(dims)
	if !ok {
		return r.Ends(o.x) // the plan says so
	}
	corner := func(n int64) engine.Corner {
		host := make([]int64, product(dims))
		host[at] = n
		return engine.Corner{{Value: o.x, Dims: dims, Host: host}}
	}
	return []engine.Corner{corner(o.lo), corner(o.hi)}
}

func (o *selectAsSymInt) Plan(p *engine.Planner) error {
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

// SymAdd adds sym_add: x + y, as a SymInt.
func SymAdd(b *engine.Builder, name string, x, y Int) engine.ValueID {
	return addSymBinary(b, name, "add", x, y)
}

// SymSub adds sym_sub: x - y, as a SymInt.
func SymSub(b *engine.Builder, name string, x, y Int) engine.ValueID {
	return addSymBinary(b, name, "sub", x, y)
}

// SymMul adds sym_mul: x * y, as a SymInt.
func SymMul(b *engine.Builder, name string, x, y Int) engine.ValueID {
	return addSymBinary(b, name, "mul", x, y)
}

// SymFloorDiv adds sym_floordiv: x / y rounded to minus infinity, as a SymInt. A y of 0 is refused.
func SymFloorDiv(b *engine.Builder, name string, x, y Int) engine.ValueID {
	return addSymBinary(b, name, "floordiv", x, y)
}

func addSymBinary(b *engine.Builder, name, kind string, x, y Int) engine.ValueID {
	if !ready(b, args(nil, x, y)...) {
		return engine.None
	}
	o := &symBinary{kind: kind, a: x, b: y, y: b.SymIntOut(name)}
	b.Add(name, o)
	return o.y
}

type symBinary struct {
	kind string
	a, b Int
	y    engine.ValueID
}

func (o *symBinary) Spec() engine.Spec {
	return engine.Spec{
		Kind: "sym_" + o.kind, Inputs: args(nil, o.a, o.b), Outputs: []engine.ValueID{o.y},
		Attrs: map[string]any{"a": o.a.attr(), "b": o.b.attr()},
	}
}

// Corners: the results are at their ends where the operands are, and a quotient also next to a divisor of 0.
func (o *symBinary) Corners(r *engine.Ranges) []engine.Corner {
	alo, ahi := o.a.span(r)
	blo, bhi := o.b.span(r)
	var list []engine.Corner
	for _, a := range []int{alo, ahi, 0} {
		for _, b := range []int{blo, bhi, -1, 1} {
			inside := a >= alo && a <= ahi && b >= blo && b <= bhi
			if !inside || o.a.isSym && o.a == o.b && a != b || o.kind == "floordiv" && b == 0 {
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

func (o *symBinary) Plan(p *engine.Planner) error {
	a, b := o.a.at(p), o.b.at(p)
	if o.kind == "floordiv" && b == 0 {
		return p.Errorf("%d over 0", a)
	}
	n := o.result(int64(a), int64(b))
	if n < -1<<31 || n >= 1<<31 {
		return p.Errorf("%d %s %d is %d, which does not fit 32 bits", a, o.kind, b, n)
	}
	p.SetInt(o.y, n)
	return nil
}

// result fits 64 bits, since the operands fit 32.
func (o *symBinary) result(a, b int64) int64 {
	switch o.kind {
	case "add":
		return a + b
	case "sub":
		return a - b
	case "mul":
		return a * b
	}
	q := a / b
	if a%b != 0 && a < 0 != (b < 0) {
		q--
	}
	return q
}

func (o *symBinary) Reference(r *Ref) {
	r.SetInt(o.y, o.result(int64(o.a.in(r)), int64(o.b.in(r))))
}
