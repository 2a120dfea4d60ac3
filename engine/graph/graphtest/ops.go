package graphtest

import (
	"fmt"
	"slices"
	"strings"

	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/engine/graph/grid"
	"gpuscope/trace"
)

// These operators are for tests of the engine. Their kernels compute on u32 words that wrap around, so their
// results are exact on every device. Evaluate computes the same results on the host.

// TestKernel returns a kernel with the given WGSL body. Each letter of accesses declares a storage binding:
// 'r' is a read binding and 'w' is a read_write binding. The bindings are named x, y, z in this order. The
// kernel has n u32 params named p0, p1 and so on.
func TestKernel(name, accesses string, n int, body string) *graph.Kernel {
	k := &graph.Kernel{Name: name, WorkgroupSize: [3]uint32{64, 1, 1}}
	var src strings.Builder
	src.WriteString("struct Params {")
	for i := range n {
		fmt.Fprintf(&src, " p%d: u32,", i)
		k.Params = append(k.Params, trace.Param{Name: fmt.Sprintf("p%d", i), Type: "u32", Offset: 4 * i})
	}
	src.WriteString(" }\n")
	for i, a := range accesses {
		access := map[rune]gpu.Access{'r': gpu.Read, 'w': gpu.ReadWrite}[a]
		fmt.Fprintf(&src, "@group(0) @binding(%d) var<storage, %s> %c: array<u32>;\n", i, access, 'x'+i)
		k.Storage = append(k.Storage, graph.Storage{Name: string('x' + rune(i)), Elem: "u32", Access: access})
	}
	fmt.Fprintf(&src, `@group(0) @binding(%d) var<uniform> params: Params;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
	@builtin(local_invocation_index) lane: u32) {
	let i = gid.x + gid.y * groups.x * 64u;
	let row = wid.x + wid.y * groups.x;
	%s
}
`, len(accesses), body)
	k.Source = src.String()
	return k
}

var (
	UnaryKernel  = TestKernel("unary", "rw", 1, "if (i < params.p0) { y[i] = x[i] + 1u; }")
	BinaryKernel = TestKernel("binary", "rrw", 1, "if (i < params.p0) { z[i] = x[i] + y[i]; }")
	oneKernel    = TestKernel("one", "rw", 2, `var sum = 0u;
	for (var j = 0u; j < params.p1; j++) { sum += x[j]; }
	for (var j = lane; row == 0u && j < params.p1; j += 64u) { y[j] = sum; }`)
	manyKernel = TestKernel("many", "rw", 2, `if (row < params.p0 && lane == 0u) {
		var sum = 0u;
		for (var j = 0u; j < params.p1; j++) { sum += x[row * params.p1 + j]; }
		y[row] = sum;
	}`)
	broadcastKernel = TestKernel("spread", "rw", 2,
		"for (var j = 0u; i < params.p0 && j < params.p1; j++) { y[i * params.p1 + j] = x[i]; }")
	CopyKernel = TestKernel("copy", "rw", 1, "if (i < params.p0) { y[i] = x[i]; }")
)

// On binds values to the bindings of a kernel made by TestKernel, in order.
func On(k *graph.Kernel, values ...graph.ValueID) graph.Use {
	u := graph.Use{Kernel: k}
	for i, v := range values {
		u.Bind = append(u.Bind, graph.Bind(string('x'+rune(i)), v))
	}
	return u
}

type testReason string

func (r testReason) String() string { return string(r) }

var ReasonOne, ReasonMany graph.Reason = testReason("rows = 1"), testReason("rows > 1")

// UnaryOp adds 1 to each element of a tensor.
type UnaryOp struct{ In, Out graph.ValueID }

// Shift adds an operator with one kernel param. The function `param` computes this param from the SymInt
// `pos`.
func Shift(b *graph.Builder, name string, x, pos graph.ValueID, param func(pos int) int) graph.ValueID {
	out := b.Tensor(name, graph.U32)
	b.Add(name, &FuncOp{
		Declares: graph.Spec{
			Kind: "shift", Inputs: []graph.ValueID{x, pos}, Outputs: []graph.ValueID{out},
			Slots: []graph.Slot{{Uses: []graph.Use{On(UnaryKernel, x, out)}}},
		},
		Bounds: func(r *graph.Ranges) []graph.Corner { return r.Ends(x, pos) },
		Plans: func(p *graph.Planner) error {
			p.SetDims(out, p.Dims(x)...)
			p.Dispatch(0, Threads(p, p.Numel(x), 64)).Params.U32("p0", param(p.Int(pos)))
			return nil
		},
	})
	return out
}

// Unary adds a UnaryOp and returns its output.
func Unary(b *graph.Builder, name string, in graph.ValueID) graph.ValueID {
	out := b.Tensor(name, graph.U32)
	b.Add(name, &UnaryOp{in, out})
	return out
}

func (o *UnaryOp) Spec() graph.Spec {
	return graph.Spec{
		Kind: "unary", Inputs: []graph.ValueID{o.In}, Outputs: []graph.ValueID{o.Out},
		Slots: []graph.Slot{{Uses: []graph.Use{On(UnaryKernel, o.In, o.Out)}}},
	}
}
func (o *UnaryOp) Corners(r *graph.Ranges) []graph.Corner { return r.Ends(o.In) }
func (o *UnaryOp) Plan(p *graph.Planner) error {
	n := p.Numel(o.In)
	p.SetDims(o.Out, p.Dims(o.In)...)
	l := p.Dispatch(0, Threads(p, n, 64))
	l.Params.U32("p0", n)
	l.Bytes = int64(8 * n)
	return nil
}

// BinaryOp adds two tensors of the same shape. Its plan rejects different shapes, as ExecuTorch's add does.
type BinaryOp struct{ A, B, Out graph.ValueID }

// AddOp adds a BinaryOp and returns its output.
func AddOp(b *graph.Builder, name string, x, y graph.ValueID) graph.ValueID {
	out := b.Tensor(name, graph.U32)
	b.Add(name, &BinaryOp{x, y, out})
	return out
}

func (o *BinaryOp) Spec() graph.Spec {
	return graph.Spec{
		Kind: "binary", Inputs: []graph.ValueID{o.A, o.B}, Outputs: []graph.ValueID{o.Out},
		Slots: []graph.Slot{{Uses: []graph.Use{On(BinaryKernel, o.A, o.B, o.Out)}}},
	}
}
func (o *BinaryOp) Corners(r *graph.Ranges) []graph.Corner { return r.Ends(o.A, o.B) }
func (o *BinaryOp) Plan(p *graph.Planner) error {
	a, b := p.Dims(o.A), p.Dims(o.B)
	if !slices.Equal(a, b) {
		return p.Errorf("the operands have different shapes: %v and %v", a, b)
	}
	n := p.Numel(o.A)
	p.SetDims(o.Out, a...)
	p.Dispatch(0, Threads(p, n, 64)).Params.U32("p0", n)
	return nil
}

// routedOp replaces each element of a row by the sum of the row. It has a route for one row and a route for
// several rows. The route for several rows needs one word of scratch per row.
type routedOp struct{ In, Out, Scratch graph.ValueID }

// Routed adds a routedOp and returns its output.
func Routed(b *graph.Builder, name string, in graph.ValueID) graph.ValueID {
	out := b.Tensor(name, graph.U32)
	b.Add(name, &routedOp{in, out, b.Scratch(name+".partial", graph.U32)})
	return out
}

func (o *routedOp) Spec() graph.Spec {
	return graph.Spec{
		Kind: "routed", Inputs: []graph.ValueID{o.In}, Outputs: []graph.ValueID{o.Out},
		Scratch: []graph.ValueID{o.Scratch},
		Routes:  []string{"one", "many"},
		Slots: []graph.Slot{
			{
				Label: "map",
				Uses:  []graph.Use{On(oneKernel, o.In, o.Out), On(manyKernel, o.In, o.Scratch)},
			},
			{Label: "reduce", Uses: []graph.Use{{}, On(broadcastKernel, o.Scratch, o.Out)}},
		},
	}
}
func (o *routedOp) Corners(r *graph.Ranges) []graph.Corner { return r.Ends(o.In) }
func (o *routedOp) Plan(p *graph.Planner) error {
	rows, width := p.Dim(o.In, 0), p.Dim(o.In, 1)
	preferred, reason, allowed := 1, ReasonMany, uint64(0b10)
	if rows == 1 {
		preferred, reason, allowed = 0, ReasonOne, 0b11
	}
	p.SetDims(o.Out, rows, width)
	route := p.Choose(preferred, reason, allowed)
	l := p.Dispatch(0, p.Rows(64, 64, grid.Each("rows", rows)))
	l.Params.U32("p0", rows).U32("p1", width)
	l.FLOPs = int64(rows * width)
	if route == 1 {
		p.SetDims(o.Scratch, rows)
		p.Dispatch(1, Threads(p, rows, 64)).Params.U32("p0", rows).U32("p1", width)
	}
	return nil
}

// ForkOp computes x + 1 and 2x + 2 in three dispatches. Its first output is complete before its last dispatch
// reads the input.
type ForkOp struct{ In, Near, Far, Scratch graph.ValueID }

// Fork adds a ForkOp and returns its outputs.
func Fork(b *graph.Builder, name string, in graph.ValueID) (near, far graph.ValueID) {
	o := &ForkOp{
		in,
		b.Tensor(name+".near", graph.U32),
		b.Tensor(name+".far", graph.U32),
		b.Scratch(name+".scratch", graph.U32),
	}
	b.Add(name, o)
	return o.Near, o.Far
}

func (o *ForkOp) Spec() graph.Spec {
	return graph.Spec{
		Kind: "fork", Inputs: []graph.ValueID{o.In}, Outputs: []graph.ValueID{o.Near, o.Far},
		Scratch: []graph.ValueID{o.Scratch},
		Slots: []graph.Slot{
			{Label: "near", Uses: []graph.Use{On(UnaryKernel, o.In, o.Near)}},
			{Label: "again", Uses: []graph.Use{On(UnaryKernel, o.Near, o.Scratch)}},
			{Label: "far", Uses: []graph.Use{On(BinaryKernel, o.Scratch, o.In, o.Far)}},
		},
	}
}
func (o *ForkOp) Corners(r *graph.Ranges) []graph.Corner { return r.Ends(o.In) }
func (o *ForkOp) Plan(p *graph.Planner) error {
	n := p.Numel(o.In)
	for _, v := range []graph.ValueID{o.Near, o.Far, o.Scratch} {
		p.SetDims(v, p.Dims(o.In)...)
	}
	for slot := range 3 {
		p.Dispatch(slot, Threads(p, n, 64)).Params.U32("p0", n)
	}
	return nil
}

// sizeOp computes a SymInt from the first dim of a tensor.
type sizeOp struct{ In, Out graph.ValueID }

// Size adds an operator that computes a SymInt from the first dim of a tensor.
func Size(b *graph.Builder, name string, in graph.ValueID) graph.ValueID {
	out := b.SymIntOut(name)
	b.Add(name, &sizeOp{in, out})
	return out
}

func (o *sizeOp) Spec() graph.Spec {
	return graph.Spec{Kind: "size", Inputs: []graph.ValueID{o.In}, Outputs: []graph.ValueID{o.Out}}
}
func (o *sizeOp) Corners(r *graph.Ranges) []graph.Corner { return r.Ends(o.In) }
func (o *sizeOp) Plan(p *graph.Planner) error {
	p.SetInt(o.Out, int64(p.Dim(o.In, 0)))
	return nil
}

// plusOp adds two SymInts.
type plusOp struct{ A, B, Out graph.ValueID }

// Plus adds an operator that adds two SymInts, and returns its output.
func Plus(b *graph.Builder, name string, x, y graph.ValueID) graph.ValueID {
	out := b.SymIntOut(name)
	b.Add(name, &plusOp{x, y, out})
	return out
}

func (o *plusOp) Spec() graph.Spec {
	return graph.Spec{Kind: "plus", Inputs: []graph.ValueID{o.A, o.B}, Outputs: []graph.ValueID{o.Out}}
}
func (o *plusOp) Corners(r *graph.Ranges) []graph.Corner { return r.Ends(o.A, o.B) }
func (o *plusOp) Plan(p *graph.Planner) error {
	p.SetInt(o.Out, int64(p.Int(o.A)+p.Int(o.B)))
	return nil
}

// CutOp copies the leading rows of a tensor. A SymInt sets the number of rows. If the tensor has fewer rows,
// CutOp copies all of them.
type CutOp struct{ In, Rows, Out graph.ValueID }

// Cut adds a CutOp and returns its output.
func Cut(b *graph.Builder, name string, in, rows graph.ValueID) graph.ValueID {
	out := b.Tensor(name, graph.U32)
	b.Add(name, &CutOp{in, rows, out})
	return out
}

func (o *CutOp) Spec() graph.Spec {
	return graph.Spec{
		Kind: "cut", Inputs: []graph.ValueID{o.In, o.Rows}, Outputs: []graph.ValueID{o.Out},
		Slots: []graph.Slot{{Uses: []graph.Use{On(CopyKernel, o.In, o.Out)}}},
	}
}
func (o *CutOp) Corners(r *graph.Ranges) []graph.Corner { return r.Ends(o.In, o.Rows) }
func (o *CutOp) Plan(p *graph.Planner) error {
	rows, width := min(p.Dim(o.In, 0), p.Int(o.Rows)), p.Dim(o.In, 1)
	p.SetDims(o.Out, rows, width)
	p.Dispatch(0, Threads(p, rows*width, 64)).Params.U32("p0", rows*width)
	return nil
}

// aliasOp copies its input, or shares memory with the input if the graph grants the alias.
type aliasOp struct{ In, Out graph.ValueID }

// Alias adds an aliasOp and returns its output.
func Alias(b *graph.Builder, name string, in graph.ValueID) graph.ValueID {
	out := b.Tensor(name, graph.U32)
	b.Add(name, &aliasOp{in, out})
	return out
}

func (o *aliasOp) Spec() graph.Spec {
	return graph.Spec{
		Kind: "alias", Inputs: []graph.ValueID{o.In}, Outputs: []graph.ValueID{o.Out}, Alias: true,
		Slots: []graph.Slot{{Uses: []graph.Use{On(CopyKernel, o.In, o.Out)}}},
	}
}
func (o *aliasOp) Corners(r *graph.Ranges) []graph.Corner { return r.Ends(o.In) }
func (o *aliasOp) Plan(p *graph.Planner) error {
	p.SetDims(o.Out, p.Dims(o.In)...)
	if !p.Aliased() {
		p.Dispatch(0, Threads(p, p.Numel(o.In), 64)).Params.U32("p0", p.Numel(o.In))
	}
	return nil
}

// Residual adds a residual block: x plus the output of a chain of `depth` unary operators that starts with
// x. In Fixpoint order the final addition may be planned while its operands still have different lengths.
func Residual(b *graph.Builder, name string, x graph.ValueID, depth int) graph.ValueID {
	y := x
	for i := range depth {
		y = Unary(b, fmt.Sprintf("%s.f%d", name, i), y)
	}
	return AddOp(b, name+".add", x, y)
}

// Threads returns a grid with one thread per element, in workgroups of the given number of lanes.
func Threads(p *graph.Planner, n, lanes int) grid.Grid { return p.Vectors(n, 1, lanes) }

// FuncOp is an operator whose methods are functions. Tests use it for operators that behave wrongly.
type FuncOp struct {
	Declares graph.Spec
	Bounds   func(r *graph.Ranges) []graph.Corner
	Plans    func(p *graph.Planner) error
}

func (o *FuncOp) Spec() graph.Spec { return o.Declares }

func (o *FuncOp) Corners(r *graph.Ranges) []graph.Corner { return o.Bounds(r) }

func (o *FuncOp) Plan(p *graph.Planner) error { return o.Plans(p) }

// DeferOp adds an operator that computes x + 1 for several rows, and defers its output for a single row.
func DeferOp(b *graph.Builder, name string, x graph.ValueID) graph.ValueID {
	left := b.Tensor(name, graph.U32)
	b.Add(name, &FuncOp{
		Declares: graph.Spec{
			Kind: "leaves", Inputs: []graph.ValueID{x}, Outputs: []graph.ValueID{left},
			Slots: []graph.Slot{{Uses: []graph.Use{On(UnaryKernel, x, left)}}},
		},
		Bounds: func(r *graph.Ranges) []graph.Corner { return r.Ends(x) },
		Plans: func(p *graph.Planner) error {
			if p.Dim(x, 0) == 1 {
				p.Defer(left, p.Dims(x)...)
				return nil
			}
			p.SetDims(left, p.Dims(x)...)
			p.Dispatch(0, Threads(p, p.Numel(x), 64)).Params.U32("p0", p.Numel(x))
			return nil
		},
	})
	return left
}

// MaterializeOp adds an operator that computes x + 1. For a single row it also materializes `left`, the
// output of DeferOp. If `forgets` is true, the operator does not materialize it, which is an error.
func MaterializeOp(b *graph.Builder, name string, x, left graph.ValueID, forgets bool) graph.ValueID {
	out := b.Tensor(name, graph.U32)
	b.Add(name, &FuncOp{
		Declares: graph.Spec{
			Kind: "makes", Inputs: []graph.ValueID{x}, Outputs: []graph.ValueID{out},
			Materializes: []graph.ValueID{left},
			Slots: []graph.Slot{
				{Label: "map", Uses: []graph.Use{On(UnaryKernel, x, out)}},
				{Label: "made", Uses: []graph.Use{On(UnaryKernel, x, left)}},
			},
		},
		Bounds: func(r *graph.Ranges) []graph.Corner { return r.Ends(x) },
		Plans: func(p *graph.Planner) error {
			p.SetDims(out, p.Dims(x)...)
			p.Dispatch(0, Threads(p, p.Numel(x), 64)).Params.U32("p0", p.Numel(x))
			if p.Dim(x, 0) == 1 && !forgets {
				p.Dispatch(1, Threads(p, p.Numel(x), 64)).Params.U32("p0", p.Numel(x))
			}
			return nil
		},
	})
	return out
}

// StoreOp adds an operator that copies a tensor to the start of a State tensor.
func StoreOp(b *graph.Builder, x, state graph.ValueID) {
	b.Add("store", &FuncOp{
		Declares: graph.Spec{
			Kind: "store", Inputs: []graph.ValueID{x}, State: []graph.ValueID{state},
			Slots: []graph.Slot{{Uses: []graph.Use{On(CopyKernel, x, state)}}},
		},
		Bounds: func(r *graph.Ranges) []graph.Corner { return r.Ends(x) },
		Plans: func(p *graph.Planner) error {
			p.Dispatch(0, Threads(p, p.Numel(x), 64)).Params.U32("p0", p.Numel(x))
			return nil
		},
	})
}
