package engine

import (
	"fmt"
	"slices"
	"strings"

	"gpuscope/engine/gpu"
	"gpuscope/trace"
)

// Operators for tests of the engine. Their kernels work on u32 words that wrap, so that results are exact on
// every device; random_test.go does the same on the host.

// testKernel has one storage binding for each letter ('r' read, 'w' read_write), called x, y, z, and n u32
// params p0, p1.
func testKernel(name, accesses string, n int, body string) *Kernel {
	k := &Kernel{Name: name, WorkgroupSize: [3]uint32{64, 1, 1}}
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
		k.Storage = append(k.Storage, Storage{Name: string('x' + rune(i)), Elem: "u32", Access: access})
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
	unaryKernel  = testKernel("unary", "rw", 1, "if (i < params.p0) { y[i] = x[i] + 1u; }")
	binaryKernel = testKernel("binary", "rrw", 1, "if (i < params.p0) { z[i] = x[i] + y[i]; }")
	oneKernel    = testKernel("one", "rw", 2, `var sum = 0u;
	for (var j = 0u; j < params.p1; j++) { sum += x[j]; }
	for (var j = lane; row == 0u && j < params.p1; j += 64u) { y[j] = sum; }`)
	manyKernel = testKernel("many", "rw", 2, `if (row < params.p0 && lane == 0u) {
		var sum = 0u;
		for (var j = 0u; j < params.p1; j++) { sum += x[row * params.p1 + j]; }
		y[row] = sum;
	}`)
	spreadKernel = testKernel("spread", "rw", 2,
		"for (var j = 0u; i < params.p0 && j < params.p1; j++) { y[i * params.p1 + j] = x[i]; }")
	copyKernel = testKernel("copy", "rw", 1, "if (i < params.p0) { y[i] = x[i]; }")
)

// on is a kernel bound to values, in the order of its bindings.
func on(k *Kernel, values ...ValueID) Use {
	u := Use{Kernel: k}
	for i, v := range values {
		u.Bind = append(u.Bind, Bind(string('x'+rune(i)), v))
	}
	return u
}

type testReason string

func (r testReason) String() string { return string(r) }

var reasonOne, reasonMany Reason = testReason("rows = 1"), testReason("rows > 1")

// unaryOp gives a tensor of its input's shape.
type unaryOp struct{ in, out ValueID }

// shift adds an operator whose param follows from a SymInt.
func shift(b *Builder, name string, x, pos ValueID, param func(pos int) int) ValueID {
	out := b.Tensor(name, U32)
	b.Add(name, &funcOp{
		spec: Spec{
			Kind: "shift", Inputs: []ValueID{x, pos}, Outputs: []ValueID{out},
			Slots: []Slot{{Uses: []Use{on(unaryKernel, x, out)}}},
		},
		corners: func(r *Ranges) []Corner { return r.Ends(x, pos) },
		plan: func(p *Planner) error {
			p.SetDims(out, p.Dims(x)...)
			p.Dispatch(0, threads(p, p.Numel(x), 64)).Params.U32("p0", param(p.Int(pos)))
			return nil
		},
	})
	return out
}

func unary(b *Builder, name string, in ValueID) ValueID {
	out := b.Tensor(name, U32)
	b.Add(name, &unaryOp{in, out})
	return out
}

func (o *unaryOp) Spec() Spec {
	return Spec{
		Kind: "unary", Inputs: []ValueID{o.in}, Outputs: []ValueID{o.out},
		Slots: []Slot{{Uses: []Use{on(unaryKernel, o.in, o.out)}}},
	}
}
func (o *unaryOp) Corners(r *Ranges) []Corner { return r.Ends(o.in) }
func (o *unaryOp) Plan(p *Planner) error {
	n := p.Numel(o.in)
	p.SetDims(o.out, p.Dims(o.in)...)
	l := p.Dispatch(0, threads(p, n, 64))
	l.Params.U32("p0", n)
	l.Bytes = int64(8 * n)
	return nil
}

// binaryOp adds tensors of one shape, and refuses others, as upstream's add does.
type binaryOp struct{ a, b, out ValueID }

func addOp(b *Builder, name string, x, y ValueID) ValueID {
	out := b.Tensor(name, U32)
	b.Add(name, &binaryOp{x, y, out})
	return out
}

func (o *binaryOp) Spec() Spec {
	return Spec{
		Kind: "binary", Inputs: []ValueID{o.a, o.b}, Outputs: []ValueID{o.out},
		Slots: []Slot{{Uses: []Use{on(binaryKernel, o.a, o.b, o.out)}}},
	}
}
func (o *binaryOp) Corners(r *Ranges) []Corner { return r.Ends(o.a, o.b) }
func (o *binaryOp) Plan(p *Planner) error {
	a, b := p.Dims(o.a), p.Dims(o.b)
	if !slices.Equal(a, b) {
		return p.Errorf("operands %v and %v are not of one shape", a, b)
	}
	n := p.Numel(o.a)
	p.SetDims(o.out, a...)
	p.Dispatch(0, threads(p, n, 64)).Params.U32("p0", n)
	return nil
}

// routedOp maps rows with one kernel where there is one row and another where there are more; each row needs
// a word of scratch.
type routedOp struct{ in, out, scratch ValueID }

func routed(b *Builder, name string, in ValueID) ValueID {
	out := b.Tensor(name, U32)
	b.Add(name, &routedOp{in, out, b.Scratch(name+".partial", U32)})
	return out
}

func (o *routedOp) Spec() Spec {
	return Spec{
		Kind: "routed", Inputs: []ValueID{o.in}, Outputs: []ValueID{o.out}, Scratch: []ValueID{o.scratch},
		Routes: []string{"one", "many"},
		Slots: []Slot{
			{
				Label: "map",
				Uses:  []Use{on(oneKernel, o.in, o.out), on(manyKernel, o.in, o.scratch)},
			},
			{Label: "reduce", Uses: []Use{{}, on(spreadKernel, o.scratch, o.out)}},
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
	l := p.Dispatch(0, p.Rows(64, 64, Each("rows", rows)))
	l.Params.U32("p0", rows).U32("p1", width)
	l.FLOPs = int64(rows * width)
	if route == 1 {
		p.SetDims(o.scratch, rows)
		p.Dispatch(1, threads(p, rows, 64)).Params.U32("p0", rows).U32("p1", width)
	}
	return nil
}

// forkOp gives x + 1, and 2x + 2 by a longer way: its first output is there long before its last dispatch has
// read its input.
type forkOp struct{ in, near, far, scratch ValueID }

func fork(b *Builder, name string, in ValueID) (near, far ValueID) {
	o := &forkOp{in, b.Tensor(name+".near", U32), b.Tensor(name+".far", U32), b.Scratch(name+".scratch", U32)}
	b.Add(name, o)
	return o.near, o.far
}

func (o *forkOp) Spec() Spec {
	return Spec{
		Kind: "fork", Inputs: []ValueID{o.in}, Outputs: []ValueID{o.near, o.far},
		Scratch: []ValueID{o.scratch},
		Slots: []Slot{
			{Label: "near", Uses: []Use{on(unaryKernel, o.in, o.near)}},
			{Label: "again", Uses: []Use{on(unaryKernel, o.near, o.scratch)}},
			{Label: "far", Uses: []Use{on(binaryKernel, o.scratch, o.in, o.far)}},
		},
	}
}
func (o *forkOp) Corners(r *Ranges) []Corner { return r.Ends(o.in) }
func (o *forkOp) Plan(p *Planner) error {
	n := p.Numel(o.in)
	for _, v := range []ValueID{o.near, o.far, o.scratch} {
		p.SetDims(v, p.Dims(o.in)...)
	}
	for slot := range 3 {
		p.Dispatch(slot, threads(p, n, 64)).Params.U32("p0", n)
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
	out := b.Tensor(name, U32)
	b.Add(name, &cutOp{in, rows, out})
	return out
}

func (o *cutOp) Spec() Spec {
	return Spec{
		Kind: "cut", Inputs: []ValueID{o.in, o.rows}, Outputs: []ValueID{o.out},
		Slots: []Slot{{Uses: []Use{on(copyKernel, o.in, o.out)}}},
	}
}
func (o *cutOp) Corners(r *Ranges) []Corner { return r.Ends(o.in, o.rows) }
func (o *cutOp) Plan(p *Planner) error {
	rows, width := min(p.Dim(o.in, 0), p.Int(o.rows)), p.Dim(o.in, 1)
	p.SetDims(o.out, rows, width)
	p.Dispatch(0, threads(p, rows*width, 64)).Params.U32("p0", rows*width)
	return nil
}

// aliasOp gives its input, as the same bytes where it may.
type aliasOp struct{ in, out ValueID }

func alias(b *Builder, name string, in ValueID) ValueID {
	out := b.Tensor(name, U32)
	b.Add(name, &aliasOp{in, out})
	return out
}

func (o *aliasOp) Spec() Spec {
	return Spec{
		Kind: "alias", Inputs: []ValueID{o.in}, Outputs: []ValueID{o.out}, Alias: true,
		Slots: []Slot{{Uses: []Use{on(copyKernel, o.in, o.out)}}},
	}
}
func (o *aliasOp) Corners(r *Ranges) []Corner { return r.Ends(o.in) }
func (o *aliasOp) Plan(p *Planner) error {
	p.SetDims(o.out, p.Dims(o.in)...)
	if !p.Aliased() {
		p.Dispatch(0, threads(p, p.Numel(o.in), 64)).Params.U32("p0", p.Numel(o.in))
	}
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

// threads is a grid of one thread for each of n elements.
func threads(p *Planner, n, lanes int) Grid { return p.Vectors(n, 1, lanes) }

// funcOp is an operator made of functions, for what a well-behaved one never does.
type funcOp struct {
	spec    Spec
	corners func(r *Ranges) []Corner
	plan    func(p *Planner) error
}

func (o *funcOp) Spec() Spec { return o.spec }

func (o *funcOp) Corners(r *Ranges) []Corner { return o.corners(r) }

func (o *funcOp) Plan(p *Planner) error { return o.plan(p) }

// leftOp gives x + 1, and leaves a single row of it.
func leftOp(b *Builder, name string, x ValueID) ValueID {
	left := b.Tensor(name, U32)
	b.Add(name, &funcOp{
		spec: Spec{
			Kind: "leaves", Inputs: []ValueID{x}, Outputs: []ValueID{left},
			Slots: []Slot{{Uses: []Use{on(unaryKernel, x, left)}}},
		},
		corners: func(r *Ranges) []Corner { return r.Ends(x) },
		plan: func(p *Planner) error {
			if p.Dim(x, 0) == 1 {
				p.Leave(left, p.Dims(x)...)
				return nil
			}
			p.SetDims(left, p.Dims(x)...)
			p.Dispatch(0, threads(p, p.Numel(x), 64)).Params.U32("p0", p.Numel(x))
			return nil
		},
	})
	return left
}

// makesOp gives x + 1, and makes a single row of what is left to it, unless it forgets to.
func makesOp(b *Builder, name string, x, left ValueID, forgets bool) ValueID {
	out := b.Tensor(name, U32)
	b.Add(name, &funcOp{
		spec: Spec{
			Kind: "makes", Inputs: []ValueID{x}, Outputs: []ValueID{out}, Makes: []ValueID{left},
			Slots: []Slot{
				{Label: "map", Uses: []Use{on(unaryKernel, x, out)}},
				{Label: "made", Uses: []Use{on(unaryKernel, x, left)}},
			},
		},
		corners: func(r *Ranges) []Corner { return r.Ends(x) },
		plan: func(p *Planner) error {
			p.SetDims(out, p.Dims(x)...)
			p.Dispatch(0, threads(p, p.Numel(x), 64)).Params.U32("p0", p.Numel(x))
			if p.Dim(x, 0) == 1 && !forgets {
				p.Dispatch(1, threads(p, p.Numel(x), 64)).Params.U32("p0", p.Numel(x))
			}
			return nil
		},
	})
	return out
}

// storeOp copies a tensor over the start of State.
func storeOp(b *Builder, x, state ValueID) {
	b.Add("store", &funcOp{
		spec: Spec{
			Kind: "store", Inputs: []ValueID{x}, State: []ValueID{state},
			Slots: []Slot{{Uses: []Use{on(copyKernel, x, state)}}},
		},
		corners: func(r *Ranges) []Corner { return r.Ends(x) },
		plan: func(p *Planner) error {
			p.Dispatch(0, threads(p, p.Numel(x), 64)).Params.U32("p0", p.Numel(x))
			return nil
		},
	})
}
