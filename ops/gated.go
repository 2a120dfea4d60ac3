package ops

import (
	"slices"

	"gpuscope/engine/graph"
	"gpuscope/ops/basic"
	"gpuscope/ops/kind"
	"gpuscope/ops/reference"
	"gpuscope/shaders"
)

// gatedOps lists the operators that join the two branches of a gated MLP: y = act(gate) * up. Kernels,
// references, costs, fusion rules and tests are all derived from the rows of this table.
var gatedOps = []gatedRow{
	{
		kind: "gelu_mul", of: "GELUMul", UnaryOp: "gelu", act: unaryNamed("gelu").Or,
		doc: "y = gate/2 * (1 + tanh(sqrt(2/pi) * (gate + 0.044715 gate^3))) * up",
	},
	{
		kind: "silu_mul", of: "SiLUMul", UnaryOp: "silu", act: unaryNamed("silu"),
		doc: "y = gate / (1 + exp(-gate)) * up",
	},
}

type gatedRow struct {
	kind    string
	of      string // name of the Go constructor
	doc     string
	UnaryOp string // kind of the unary operator that computes act
	act     *basic.UnaryRow
}

// unaryNamed returns the row of a unary operator.
func unaryNamed(kind string) *basic.UnaryRow {
	return &basic.Unaries[slices.IndexFunc(basic.Unaries,
		func(r basic.UnaryRow) bool { return r.Kind == kind })]
}

// SiLUMul adds silu_mul: y = gate / (1 + exp(-gate)) * up, element by element. ExecuTorch computes
// it with sigmoid, mul and mul (silu_mul_fused).
//
//	gate, up  same dims
//	y         their dims
//
// Source: Shazeer, GLU Variants Improve Transformer (2020), SwiGLU.
func SiLUMul(b *graph.Builder, name string, gate, up graph.ValueID) graph.ValueID {
	return KindOf("silu_mul").BuildOne(b, name, kind.Args{"gate": gate, "up": up})
}

// GELUMul adds gelu_mul: y = gelu(gate) * up, element by element, with the tanh approximation of gelu.
//
//	gate, up  same dims
//	y         their dims
//
// Source: Shazeer, GLU Variants Improve Transformer (2020), GEGLU; Hendrycks and Gimpel, Gaussian Error
// Linear Units (2016), for tanh.
func GELUMul(b *graph.Builder, name string, gate, up graph.ValueID) graph.ValueID {
	return KindOf("gelu_mul").BuildOne(b, name, kind.Args{"gate": gate, "up": up})
}

var kindsOfGated = kind.Each(gatedOps, func(r *gatedRow) kind.Kind {
	return kind.Kind{
		Name: r.kind, Doc: r.doc + ", element by element.",
		Args:         []kind.Arg{kind.Required("gate", kind.F32Tensor), kind.Required("up", kind.F32Tensor)},
		Constructors: basic.Constructors(r.of), Add: r.add,
	}
})

var gatedKinds = kind.Names(kindsOfGated)

func (r *gatedRow) add(c *kind.Call) []graph.ValueID {
	gate, up := c.ArgTensor("gate"), c.ArgTensor("up")
	o := &gatedOp{
		gatedRow: r, gate: gate, up: up, y: c.Out("", graph.F32),
		Vec: min(kind.Vec(c.Builder, gate, -1), kind.Vec(c.Builder, up, -1)),
	}
	o.NewKernel = r.NewKernel(c.Builder, o.Vec, 0)
	return c.AddOp(o, o.y)
}

// NewKernel returns the operator's kernel, which processes vec elements (a vector) at a time. If width is 0,
// gate and up are separate tensors. Otherwise a single tensor contains both: each of its rows has width
// vectors of gate, followed by width vectors of up.
func (r *gatedRow) NewKernel(b *graph.Builder, vec, width int) *graph.Kernel {
	return kind.NewKernelAs(b, r.kind, "gated", shaders.Constants{
		"Act": r.act.Kind, "Expr": basic.OfElements(r.act.WGSL, vec), "Lanes": kind.ThreadLanes, "Vec": vec,
		"Width": width,
	})
}

type gatedOp struct {
	*gatedRow
	gate, up, y graph.ValueID
	NewKernel   *graph.Kernel
	Vec         int
}

func (o *gatedOp) Spec() graph.Spec {
	return graph.Spec{
		Kind: o.kind, Inputs: []graph.ValueID{o.gate, o.up}, Outputs: []graph.ValueID{o.y},
		Slots: []graph.Slot{{Uses: kind.Uses(o.NewKernel, graph.Bind("gate", o.gate), graph.Bind("up", o.up), graph.Bind("y", o.y))}},
	}
}

func (o *gatedOp) Corners(r *graph.Ranges) []graph.Corner { return r.Ends(o.gate, o.up) }

func (o *gatedOp) Plan(p *graph.Planner) error {
	if !slices.Equal(p.Dims(o.gate), p.Dims(o.up)) {
		return p.Errorf("gate has dims %v and up has dims %v, want the same dims",
			p.Dims(o.gate), p.Dims(o.up))
	}
	n := p.Numel(o.gate)
	p.SetDims(o.y, p.Dims(o.gate)...)
	l := p.Dispatch(0, p.Vectors(n, o.Vec, kind.ThreadLanes))
	l.Params.U32("n", n/o.Vec)
	l.Bytes, l.FLOPs = 12*int64(n), int64(o.act.FLOPs+1)*int64(n)
	return nil
}

func (o *gatedOp) Reference(r *reference.Ref) {
	gate, up := r.Tensor(o.gate), r.Tensor(o.up)
	y := r.Result(o.y, gate.Dims...)
	rows, _ := gate.Rows()
	for i := range r.Rows(o.y, rows) {
		for j, g := range gate.Row(i) {
			y.Row(i)[j] = o.act.F(g) * up.Row(i)[j]
		}
	}
	r.Set(o.y, y)
}

// Tolerance returns the tolerance of act(gate), multiplied by the largest |up|.
func (o *gatedOp) Tolerance(r *reference.Ref, _ graph.ValueID) reference.Tolerance {
	t := o.act.Error
	t.Rel += reference.ULPs(1)
	t.Abs = (t.Abs + o.act.ErrorOfX*r.Largest(o.gate)) * r.Largest(o.up)
	return t
}
