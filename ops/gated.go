package ops

import (
	"slices"

	"gpuscope/engine/graph"
	"gpuscope/shaders"
)

// gatedOps are the family of operators that join the two branches of a gated MLP, y = act(gate) * up, a row
// each: kernel, reference, cost, fusion rule and tests follow from it.
var gatedOps = []gatedRow{
	{
		kind: "gelu_mul", of: "GELUMul", unary: "gelu", act: unaryNamed("gelu").or,
		doc: "y = gate/2 * (1 + tanh(sqrt(2/pi) * (gate + 0.044715 gate^3))) * up",
	},
	{
		kind: "silu_mul", of: "SiLUMul", unary: "silu", act: unaryNamed("silu"),
		doc: "y = gate / (1 + exp(-gate)) * up",
	},
}

type gatedRow struct {
	kind  string
	of    string // the Go constructor
	doc   string
	unary string // the kind of operator that act is one by itself of
	act   *unaryRow
}

// unaryNamed is the row of a unary operator.
func unaryNamed(kind string) *unaryRow {
	return &unaries[slices.IndexFunc(unaries, func(r unaryRow) bool { return r.kind == kind })]
}

// SiLUMul adds silu_mul: y = gate / (1 + exp(-gate)) * up, element by element. Upstream makes it of sigmoid,
// mul and mul (silu_mul_fused).
//
//	gate, up  same dims
//	y         their dims
//
// Source: Shazeer, GLU Variants Improve Transformer (2020), SwiGLU.
func SiLUMul(b *graph.Builder, name string, gate, up graph.ValueID) graph.ValueID {
	return KindOf("silu_mul").one(b, name, Args{"gate": gate, "up": up})
}

// GELUMul adds gelu_mul: y = gelu(gate) * up, element by element, of the gelu that is made of tanh.
//
//	gate, up  same dims
//	y         their dims
//
// Source: Shazeer, GLU Variants Improve Transformer (2020), GEGLU; Hendrycks and Gimpel, Gaussian Error
// Linear Units (2016), for tanh.
func GELUMul(b *graph.Builder, name string, gate, up graph.ValueID) graph.ValueID {
	return KindOf("gelu_mul").one(b, name, Args{"gate": gate, "up": up})
}

var kindsOfGated = eachKind(gatedOps, func(r *gatedRow) Kind {
	return Kind{
		Name: r.kind, Doc: r.doc + ", element by element.",
		Args:         []Arg{{"gate", f32Tensor, nil}, {"up", f32Tensor, nil}},
		Constructors: constructors(r.of), add: r.add,
	}
})

var gatedKinds = kindNames(kindsOfGated)

func (r *gatedRow) add(c *call) []graph.ValueID {
	gate, up := c.tensor("gate"), c.tensor("up")
	o := &gatedOp{
		gatedRow: r, gate: gate, up: up, y: c.out("", graph.F32),
		vec: min(vec(c.Builder, gate, -1), vec(c.Builder, up, -1)),
	}
	o.kernel = r.kernel(c.Builder, o.vec, 0)
	return c.adds(o, o.y)
}

// kernel works on vec elements at a time, of a gate and an up of their own or, where width is not 0, of
// tensors with rows of so many vectors of each, one after another.
func (r *gatedRow) kernel(b *graph.Builder, vec, width int) *graph.Kernel {
	return kernelAs(b, r.kind, "gated", shaders.Constants{
		"Act": r.act.kind, "Expr": ofElements(r.act.wgsl, vec), "Lanes": threadLanes, "Vec": vec,
		"Width": width,
	})
}

type gatedOp struct {
	*gatedRow
	gate, up, y graph.ValueID
	kernel      *graph.Kernel
	vec         int
}

func (o *gatedOp) Spec() graph.Spec {
	return graph.Spec{
		Kind: o.kind, Inputs: []graph.ValueID{o.gate, o.up}, Outputs: []graph.ValueID{o.y},
		Slots: []graph.Slot{{Uses: one(o.kernel, bind("gate", o.gate), bind("up", o.up), bind("y", o.y))}},
	}
}

func (o *gatedOp) Corners(r *graph.Ranges) []graph.Corner { return r.Ends(o.gate, o.up) }

func (o *gatedOp) Plan(p *graph.Planner) error {
	if !sameDims(p.Dims(o.gate), p.Dims(o.up)) {
		return p.Errorf("gate is %v, up is %v, want the same", p.Dims(o.gate), p.Dims(o.up))
	}
	n := p.Numel(o.gate)
	p.SetDims(o.y, p.Dims(o.gate)...)
	l := p.Dispatch(0, p.Vectors(n, o.vec, threadLanes))
	l.Params.U32("n", n/o.vec)
	l.Bytes, l.FLOPs = 12*int64(n), int64(o.act.flops+1)*int64(n)
	return nil
}

func (o *gatedOp) Reference(r *Ref) {
	gate, up := r.Tensor(o.gate), r.Tensor(o.up)
	y := r.result(o.y, gate.Dims...)
	rows, _ := gate.rows()
	for i := range r.rows(o.y, rows) {
		for j, g := range gate.row(i) {
			y.row(i)[j] = o.act.f(g) * up.row(i)[j]
		}
	}
	r.Set(o.y, y)
}

// Tolerance is that of the activation, times up.
func (o *gatedOp) Tolerance(r *Ref, _ graph.ValueID) Tolerance {
	t := o.act.near
	t.Rel += ulps(1)
	t.Abs = (t.Abs + o.act.nearX*r.largest(o.gate)) * r.largest(o.up)
	return t
}
