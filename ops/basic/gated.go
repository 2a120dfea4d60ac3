package basic

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gpuscope/engine/graph"
	"gpuscope/ops/kind"
	"gpuscope/ops/reference"
	"gpuscope/shaders"
)

// Gates lists the operators that join the two branches of a gated MLP: y = act(gate) * up. Kernels,
// references, costs, fusion rules and tests are all derived from the rows of this table.
var Gates = []GatedRow{
	{
		Kind: "clamped_swiglu", of: "ClampedSwiGLU",
		doc: "y = g / (1 + exp(-1.702 g)) * (clamp(up, -7, 7) + 1), where g = min(gate, 7)",
		Act: &UnaryRow{
			Kind: "clamped_silu",
			WGSL: "min(v, $T(7.0)) / (1.0 + exp(-1.702 * min(v, $T(7.0))))",
			F: func(x float64) float64 {
				x = min(x, 7)
				return x / (1 + math.Exp(-1.702*x))
			},
			FLOPs: 5,
			Error: reference.Tolerance{
				Rel: reference.ExpTolerance.Rel, Abs: 0x1p-22,
				Why: reference.ExpTolerance.Why + "; the argument of exp is rounded",
			},
			ErrorOfX: 0x1p-126,
		},
		Up: UpRow{
			WGSL: "(clamp($up, $T(-7.0), $T(7.0)) + 1.0)",
			F:    func(x float64) float64 { return min(max(x, -7), 7) + 1 }, FLOPs: 3,
		},
	},
	{
		Kind: "gelu_mul", of: "GELUMul", UnaryOp: "gelu", Act: unaryNamed("gelu").Or, Up: same,
		doc: "y = gate/2 * (1 + tanh(sqrt(2/pi) * (gate + 0.044715 gate^3))) * up",
	},
	{
		Kind: "sigmoid_mul", of: "SigmoidMul", UnaryOp: "sigmoid", Act: unaryNamed("sigmoid"), Up: same,
		doc: "y = up / (1 + exp(-gate))",
	},
	{
		Kind: "silu_mul", of: "SiLUMul", UnaryOp: "silu", Act: unaryNamed("silu"), Up: same,
		doc: "y = gate / (1 + exp(-gate)) * up",
	},
}

// GatedRow describes an operator that joins the two branches of a gated MLP.
type GatedRow struct {
	Kind    string
	of      string // name of the Go constructor
	doc     string
	UnaryOp string // kind of the unary operator that computes act, or empty if there is none
	Act     *UnaryRow
	Up      UpRow
}

// UpRow describes what a gated operator does with up before it multiplies act(gate) by the result.
type UpRow struct {
	WGSL  string // WGSL expression with the placeholders of UnaryRow. $up stands for the element of up
	F     func(x float64) float64
	FLOPs int
}

// same is the UpRow of operators that multiply act(gate) by `up` unchanged.
var same = UpRow{"$up", func(x float64) float64 { return x }, 0}

// Expr returns the WGSL expression that joins the branches, for vec elements at a time. It reads gate from
// the variable v. The argument `up` is a WGSL expression, whose value is the element of the branch up.
func (r *GatedRow) Expr(vec int, up string) shaders.Text {
	return OfElements("("+r.Act.WGSL+") * "+strings.ReplaceAll(r.Up.WGSL, "$up", up), vec)
}

// F joins the branches in float64.
func (r *GatedRow) F(gate, up float64) float64 { return r.Act.F(gate) * r.Up.F(up) }

// FLOPs returns the number of floating-point operations for each element.
func (r *GatedRow) FLOPs() int { return r.Act.FLOPs + r.Up.FLOPs + 1 }

// LargestFactor returns an upper bound of the factor by which act(gate) is multiplied. It assumes that |up|
// is at most `largest`.
func (r *GatedRow) LargestFactor(largest float64) float64 {
	return max(math.Abs(r.Up.F(largest)), math.Abs(r.Up.F(-largest)))
}

// unaryNamed returns the row of a unary operator.
func unaryNamed(kind string) *UnaryRow {
	return &Unaries[slices.IndexFunc(Unaries,
		func(r UnaryRow) bool { return r.Kind == kind })]
}

// SiLUMul adds silu_mul: y = gate / (1 + exp(-gate)) * up, element by element. ExecuTorch computes
// it with sigmoid, mul and mul (silu_mul_fused).
//
//	gate, up  same dims
//	y         their dims
//
// Source: Shazeer, GLU Variants Improve Transformer (2020), SwiGLU.
func SiLUMul(b *graph.Builder, name string, gate, up graph.ValueID) graph.ValueID {
	return member("silu_mul").BuildOne(b, name, kind.Args{"gate": gate, "up": up})
}

// SigmoidMul adds sigmoid_mul: y = up / (1 + exp(-gate)), element by element.
//
//	gate, up  same dims
//	y         their dims
//
// Source: Qiu and others, Gated Attention for Large Language Models (2025).
func SigmoidMul(b *graph.Builder, name string, gate, up graph.ValueID) graph.ValueID {
	return member("sigmoid_mul").BuildOne(b, name, kind.Args{"gate": gate, "up": up})
}

// GELUMul adds gelu_mul: y = gelu(gate) * up, element by element, with the tanh approximation of gelu.
//
//	gate, up  same dims
//	y         their dims
//
// Source: Shazeer, GLU Variants Improve Transformer (2020), GEGLU; Hendrycks and Gimpel, Gaussian Error
// Linear Units (2016), for tanh.
func GELUMul(b *graph.Builder, name string, gate, up graph.ValueID) graph.ValueID {
	return member("gelu_mul").BuildOne(b, name, kind.Args{"gate": gate, "up": up})
}

// ClampedSwiGLU adds clamped_swiglu, element by element: y = g * sigmoid(1.702 g) * (clamp(up, -7, 7) + 1),
// where g = min(gate, 7).
//
//	gate, up  same dims
//	y         their dims
//
// Source: OpenAI, gpt-oss-120b & gpt-oss-20b Model Card (2025), and its reference code.
func ClampedSwiGLU(b *graph.Builder, name string, gate, up graph.ValueID) graph.ValueID {
	return member("clamped_swiglu").BuildOne(b, name, kind.Args{"gate": gate, "up": up})
}

var kindsOfGates = kind.Each(Gates, func(r *GatedRow) kind.Kind {
	return kind.Kind{
		Name: r.Kind, Doc: r.doc + ", element by element.",
		Args:         []kind.Arg{kind.Required("gate", kind.F32Tensor), kind.Required("up", kind.F32Tensor)},
		Constructors: Constructors(r.of), Add: r.add,
	}
})

// GatedKinds lists the names of the operators in Gates.
var GatedKinds = kind.Names(kindsOfGates)

func (r *GatedRow) add(c *kind.Call) []graph.ValueID {
	gate, up := c.ArgTensor("gate"), c.ArgTensor("up")
	o := &GatedOp{
		GatedRow: r, Gate: gate, Up: up, Y: c.Out("", graph.F32),
		Vec: min(kind.Vec(c.Builder, gate, -1), kind.Vec(c.Builder, up, -1)),
	}
	o.NewKernel = r.NewKernel(c.Builder, o.Vec, 0)
	return c.AddOp(o, o.Y)
}

// NewKernel returns the operator's kernel, which processes vec elements (a vector) at a time. If `width` is
// 0, gate and up are separate tensors. Otherwise a single tensor contains both: each of its rows has `width`
// vectors of gate, followed by `width` vectors of up.
func (r *GatedRow) NewKernel(b *graph.Builder, vec, width int) *graph.Kernel {
	up := "up[i]"
	if width > 0 {
		up = fmt.Sprintf("x[at + %du]", width)
	}
	return kind.NewKernelAs(b, r.Kind, "gated", shaders.Constants{
		"Act": r.Act.Kind, "Expr": r.Expr(vec, up), "Lanes": kind.ThreadLanes, "Vec": vec, "Width": width,
	})
}

// GatedOp is an operator of Gates: it computes Y from Gate and Up.
type GatedOp struct {
	*GatedRow
	Gate, Up, Y graph.ValueID
	NewKernel   *graph.Kernel
	Vec         int
}

func (o *GatedOp) Spec() graph.Spec {
	return graph.Spec{
		Kind: o.Kind, Inputs: []graph.ValueID{o.Gate, o.Up}, Outputs: []graph.ValueID{o.Y},
		Slots: []graph.Slot{{Uses: kind.Uses(o.NewKernel, graph.Bind("gate", o.Gate), graph.Bind("up", o.Up), graph.Bind("y", o.Y))}},
	}
}

func (o *GatedOp) Corners(r *graph.Ranges) []graph.Corner { return r.Ends(o.Gate, o.Up) }

func (o *GatedOp) Plan(p *graph.Planner) error {
	if !slices.Equal(p.Dims(o.Gate), p.Dims(o.Up)) {
		return p.Errorf("gate has dims %v and up has dims %v, want the same dims",
			p.Dims(o.Gate), p.Dims(o.Up))
	}
	n := p.Numel(o.Gate)
	p.SetDims(o.Y, p.Dims(o.Gate)...)
	l := p.Dispatch(0, p.Vectors(n, o.Vec, kind.ThreadLanes))
	l.Params.U32("n", n/o.Vec)
	l.Bytes, l.FLOPs = 12*int64(n), int64(o.FLOPs())*int64(n)
	return nil
}

func (o *GatedOp) Reference(r *reference.Ref) {
	gate, up := r.Tensor(o.Gate), r.Tensor(o.Up)
	y := r.Result(o.Y, gate.Dims...)
	rows, _ := gate.Rows()
	for i := range r.Rows(o.Y, rows) {
		for j, g := range gate.Row(i) {
			y.Row(i)[j] = o.F(g, up.Row(i)[j])
		}
	}
	r.Set(o.Y, y)
}

// Tolerance returns the tolerance of act(gate), multiplied by the largest factor.
func (o *GatedOp) Tolerance(r *reference.Ref, _ graph.ValueID) reference.Tolerance {
	t := o.Act.Error
	t.Rel += reference.ULPs(1)
	t.Abs = (t.Abs + o.Act.ErrorOfX*r.Largest(o.Gate)) * o.LargestFactor(r.Largest(o.Up))
	return t
}
