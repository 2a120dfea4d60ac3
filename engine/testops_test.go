package engine

import (
	"fmt"
	"slices"

	"gpuscope/engine/gpu"
	"gpuscope/trace"
)

// Operators for tests of the engine: they plan like real ones and have kernels that nobody compiles.

// testKernel has one storage binding for each access letter ('r' read, 'w' read_write) and n u32 params.
func testKernel(name, accesses string, n int) *Kernel {
	k := &Kernel{Name: name, Source: "// " + name, WorkgroupSize: [3]uint32{64, 1, 1}}
	for _, a := range accesses {
		k.Storage = append(k.Storage, map[rune]gpu.Access{'r': gpu.Read, 'w': gpu.ReadWrite}[a])
	}
	for i := range n {
		k.Params = append(k.Params, trace.Param{Name: fmt.Sprintf("p%d", i), Type: "u32", Offset: 4 * i})
	}
	return k
}

var (
	unaryKernel  = testKernel("unary", "rw", 1)
	binaryKernel = testKernel("binary", "rrw", 1)
	oneKernel    = testKernel("one", "rw", 2)
	manyKernel   = testKernel("many", "rw", 2)
	sumKernel    = testKernel("sum", "rw", 1)
	copyKernel   = testKernel("copy", "rw", 1)
)

type testReason string

func (r testReason) String() string { return string(r) }

var reasonOne, reasonMany Reason = testReason("rows = 1"), testReason("rows > 1")

// unaryOp gives a tensor of its input's shape.
type unaryOp struct{ in, out ValueID }

func unary(b *Builder, name string, in ValueID) ValueID {
	out := b.Tensor(name, F32)
	b.Add(name, &unaryOp{in, out})
	return out
}

func (o *unaryOp) Spec() Spec {
	return Spec{Kind: "unary", Inputs: []ValueID{o.in}, Outputs: []ValueID{o.out}, Slots: []Slot{{Uses: []Use{{unaryKernel, []ValueID{o.in, o.out}}}}}}
}
func (o *unaryOp) Corners(r *Ranges) []Corner { return r.Ends(o.in) }
func (o *unaryOp) Plan(p *Planner) error {
	n := p.Numel(o.in)
	p.SetDims(o.out, p.Dims(o.in)...)
	l := p.Dispatch(0, p.Threads(n, 64))
	l.Params.U32(n)
	l.Bytes = int64(8 * n)
	return nil
}

// binaryOp adds tensors of one shape, and refuses others, as upstream's add does.
type binaryOp struct{ a, b, out ValueID }

func addOp(b *Builder, name string, x, y ValueID) ValueID {
	out := b.Tensor(name, F32)
	b.Add(name, &binaryOp{x, y, out})
	return out
}

func (o *binaryOp) Spec() Spec {
	return Spec{Kind: "binary", Inputs: []ValueID{o.a, o.b}, Outputs: []ValueID{o.out}, Slots: []Slot{{Uses: []Use{{binaryKernel, []ValueID{o.a, o.b, o.out}}}}}}
}
func (o *binaryOp) Corners(r *Ranges) []Corner { return r.Ends(o.a, o.b) }
func (o *binaryOp) Plan(p *Planner) error {
	a, b := p.Dims(o.a), p.Dims(o.b)
	if !slices.Equal(a, b) {
		return p.Errorf("operands %v and %v are not of one shape", a, b)
	}
	n := p.Numel(o.a)
	p.SetDims(o.out, a...)
	p.Dispatch(0, p.Threads(n, 64)).Params.U32(n)
	return nil
}

// routedOp maps rows with one kernel where there is one row and another where there are more; each row needs a word of scratch.
type routedOp struct{ in, out, scratch ValueID }

func routed(b *Builder, name string, in ValueID) ValueID {
	out := b.Tensor(name, F32)
	b.Add(name, &routedOp{in, out, b.Scratch(name+".partial", F32)})
	return out
}

func (o *routedOp) Spec() Spec {
	return Spec{
		Kind: "routed", Inputs: []ValueID{o.in}, Outputs: []ValueID{o.out}, Scratch: []ValueID{o.scratch}, Routes: []string{"one", "many"},
		Slots: []Slot{
			{Label: "map", Uses: []Use{{oneKernel, []ValueID{o.in, o.out}}, {manyKernel, []ValueID{o.in, o.scratch}}}},
			{Label: "reduce", Uses: []Use{{}, {sumKernel, []ValueID{o.scratch, o.out}}}},
		},
	}
}
func (o *routedOp) Corners(r *Ranges) []Corner { return r.Ends(o.in) }
func (o *routedOp) Plan(p *Planner) error {
	rows, width := p.Dim(o.in, 0), p.Dim(o.in, 1)
	preferred, reason, allowed := 1, reasonMany, uint64(0b10)
	if rows == 1 {
		preferred, reason, allowed = 0, reasonOne, 0b11
	}
	p.SetDims(o.out, rows, width)
	route := p.Choose(preferred, reason, allowed)
	l := p.Dispatch(0, p.Rows(rows, 64, 64))
	l.Params.U32(rows, width)
	l.FLOPs = int64(rows * width)
	if route == 1 {
		p.SetDims(o.scratch, rows)
		p.Dispatch(1, p.Threads(rows, 64)).Params.U32(rows)
	}
	return nil
}

// sizeOp gives a tensor's first dim as a SymInt.
type sizeOp struct{ in, out ValueID }

func size(b *Builder, name string, in ValueID) ValueID {
	out := b.SymIntOut(name)
	b.Add(name, &sizeOp{in, out})
	return out
}

func (o *sizeOp) Spec() Spec {
	return Spec{Kind: "size", Inputs: []ValueID{o.in}, Outputs: []ValueID{o.out}}
}
func (o *sizeOp) Corners(r *Ranges) []Corner { return r.Ends(o.in) }
func (o *sizeOp) Plan(p *Planner) error {
	p.SetInt(o.out, int64(p.Dim(o.in, 0)))
	return nil
}

// plusOp adds two SymInts.
type plusOp struct{ a, b, out ValueID }

func plus(b *Builder, name string, x, y ValueID) ValueID {
	out := b.SymIntOut(name)
	b.Add(name, &plusOp{x, y, out})
	return out
}

func (o *plusOp) Spec() Spec {
	return Spec{Kind: "plus", Inputs: []ValueID{o.a, o.b}, Outputs: []ValueID{o.out}}
}
func (o *plusOp) Corners(r *Ranges) []Corner { return r.Ends(o.a, o.b) }
func (o *plusOp) Plan(p *Planner) error {
	p.SetInt(o.out, int64(p.Int(o.a)+p.Int(o.b)))
	return nil
}

// cutOp keeps as many leading rows as a SymInt says, at most all.
type cutOp struct{ in, rows, out ValueID }

func cut(b *Builder, name string, in, rows ValueID) ValueID {
	out := b.Tensor(name, F32)
	b.Add(name, &cutOp{in, rows, out})
	return out
}

func (o *cutOp) Spec() Spec {
	return Spec{Kind: "cut", Inputs: []ValueID{o.in, o.rows}, Outputs: []ValueID{o.out}, Slots: []Slot{{Uses: []Use{{copyKernel, []ValueID{o.in, o.out}}}}}}
}
func (o *cutOp) Corners(r *Ranges) []Corner { return r.Ends(o.in, o.rows) }
func (o *cutOp) Plan(p *Planner) error {
	rows, width := min(p.Dim(o.in, 0), p.Int(o.rows)), p.Dim(o.in, 1)
	p.SetDims(o.out, rows, width)
	p.Dispatch(0, p.Threads(rows*width, 64)).Params.U32(rows * width)
	return nil
}

// residual is x + f(f(...f(x))), the block that a pass-by-pass order meets with operands of two lengths.
func residual(b *Builder, name string, x ValueID, depth int) ValueID {
	y := x
	for i := range depth {
		y = unary(b, fmt.Sprintf("%s.f%d", name, i), y)
	}
	return addOp(b, name+".add", x, y)
}
