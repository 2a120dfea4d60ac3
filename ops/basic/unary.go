package basic

import (
	"math"
	"strings"

	"gpuscope/engine/graph"
	"gpuscope/ops/kind"
	"gpuscope/ops/reference"
	"gpuscope/shaders"
)

// Unaries lists the operators that compute each element of y from one element of x. Kernels, references,
// costs and tests are all derived from the rows of this table.
var Unaries = []UnaryRow{
	{
		Error: reference.Exact,
		Kind:  "abs", doc: "y = |x|", WGSL: "abs(v)", F: math.Abs, FLOPs: 1, From: -1000, To: 1000,
	},
	{
		Error: sineTolerance, ErrorOfX: reference.ULPs(2), Kind: "cos", doc: "y = cos x",
		WGSL: "cos(subtract_whole_turns(v))", needs: turnsWGSL, F: math.Cos, FLOPs: 5, From: -500, To: 500,
		Also: []float64{0, math.Pi / 2, -math.Pi, 1000},
	},
	{
		Error: reference.ExpTolerance,
		Kind:  "exp", doc: "y = e^x", WGSL: "exp(v)", F: math.Exp, FLOPs: 1, From: -20, To: 20,
		Also: []float64{-1000, 0, 1000},
	},
	{
		Error: reference.Exact,
		Kind:  "floor", doc: "y = the largest integer that is at most x", WGSL: "floor(v)", F: math.Floor,
		FLOPs: 1, From: -1000, To: 1000, Also: []float64{-1, -0.5, 0, 2, 1e30},
	},
	{
		Error: reference.Tolerance{
			Rel: reference.ExpTolerance.Rel,
			Why: "the error of erf, 1.5e-7, is multiplied by x",
		}, ErrorOfX: 4e-7,
		Kind: "gelu", of: "GELU", doc: "y = x * Phi(x), where Phi is the cumulative normal distribution",
		WGSL: "0.5 * v * (1.0 + erf(v * 0.70710678118654752))", needs: erfWGSL,
		F:     func(x float64) float64 { return x / 2 * (1 + math.Erf(x/math.Sqrt2)) },
		FLOPs: 16, From: -60, To: 60, Also: []float64{-1000, 0, 1000},
		Or: &UnaryRow{
			Error: reference.Tolerance{
				Rel: reference.ULPs(8),
				Why: "the error of 1 + tanh, 8 ulp, is multiplied by x",
			}, ErrorOfX: reference.ULPs(8),
			Kind: "gelu_tanh", When: "tanh",
			doc: "If tanh is true, y = x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3)))",
			// tanh(u) = 1 - 2 / (exp(2 u) + 1), where u is clamped so that exp does not overflow.
			WGSL: "0.5 * v * (2.0 - 2.0 / (exp(2.0 * clamp(0.79788456080286536 * " +
				"(v + 0.044715 * v * v * v), $T(-20.0), $T(20.0))) + 1.0))",
			F: func(x float64) float64 {
				return x / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
			},
			FLOPs: 10, From: -60, To: 60, Also: []float64{-1000, 0, 1000},
		},
	},
	{
		Error: reference.Tolerance{
			Rel: reference.ULPs(3),
			Abs: 0x1p-21,
			Why: "in WGSL the error of log is at most 2^-21 near 1, and at most 3 ulp elsewhere",
		},
		Kind: "log", doc: "y = ln x, for x > 0", WGSL: "log(v)", F: math.Log, FLOPs: 1,
		From: 1e-3, To: 1000,
		Also: []float64{1, 1e-30, 1e30},
	},
	{
		Error: reference.Exact,
		Kind:  "neg", doc: "y = -x", WGSL: "-v", F: func(x float64) float64 { return -x }, FLOPs: 1,
		From: -1000, To: 1000,
	},
	{
		Error: reference.Tolerance{Rel: reference.ULPs(2.5), Why: "WGSL allows an error of 2.5 ulp in division"},
		Kind:  "reciprocal", doc: "y = 1 / x", WGSL: "1.0 / v", F: func(x float64) float64 { return 1 / x },
		FLOPs: 1, From: 1e-3, To: 1000, Also: []float64{-1, -4e-3, 1e-30, 1e30},
	},
	{
		Error: reference.Exact,
		Kind:  "relu", doc: "y = x if x > 0, NaN if x is NaN, else 0",
		WGSL: "select(max(v, $T(0.0)), v, is_nan(v))", needs: isNaNWGSL,
		F: func(x float64) float64 {
			if x < 0 {
				return 0
			}
			return x
		},
		FLOPs: 1, From: -1000, To: 1000, Also: []float64{0, math.NaN(), math.Inf(1), math.Inf(-1)},
	},
	{
		Error: reference.Exact,
		Kind:  "round", doc: "y = the integer nearest to x, or the even one if two are equally near", WGSL: "round(v)",
		F: math.RoundToEven, FLOPs: 1, From: -1000, To: 1000, Also: []float64{-1.5, -0.5, 0.5, 2.5, 1e30},
	},
	{
		Error: reference.Tolerance{
			Rel: reference.ULPs(2), Why: "WGSL allows an error of 2 ulp in inverseSqrt",
		},
		Kind: "rsqrt", doc: "y = 1 / sqrt(x), for x > 0", WGSL: "inverseSqrt(v)",
		F: func(x float64) float64 { return 1 / math.Sqrt(x) }, FLOPs: 1, From: 1e-3, To: 1000,
		Also: []float64{1, 1e-30, 1e30},
	},
	{
		Error: reference.ExpTolerance,
		Kind:  "sigmoid", of: "Sigmoid", doc: "y = 1 / (1 + exp(-x))", WGSL: "1.0 / (1.0 + exp(-v))",
		F:     func(x float64) float64 { return 1 / (1 + math.Exp(-x)) },
		FLOPs: 3, From: -60, To: 60, Also: []float64{-1000, 0, 1000},
	},
	{
		Error: reference.Tolerance{
			Rel: reference.ExpTolerance.Rel, Why: reference.ExpTolerance.Why + "; a quotient x / d with d above 2^126 may be flushed to 0",
		},
		ErrorOfX: 0x1p-126,
		Kind:     "silu", of: "SiLU", doc: "y = x / (1 + exp(-x))", WGSL: "v / (1.0 + exp(-v))",
		F:     func(x float64) float64 { return x / (1 + math.Exp(-x)) },
		FLOPs: 3, From: -60, To: 60, Also: []float64{-1000, 0, 1000},
	},
	{
		Error: sineTolerance, ErrorOfX: reference.ULPs(2), Kind: "sin", doc: "y = sin x",
		WGSL: "sin(subtract_whole_turns(v))", needs: turnsWGSL, F: math.Sin, FLOPs: 5, From: -500, To: 500,
		Also: []float64{0, math.Pi / 2, -math.Pi, 1000},
	},
	{
		Error: reference.Tolerance{
			Rel: reference.ULPs(4), Abs: 0x1p-21, Why: "in WGSL the error of log is at most 2^-21 near 1",
		},
		Kind: "softplus", doc: "y = ln(1 + e^x)", WGSL: "max(v, $T(0.0)) + log(1.0 + exp(-abs(v)))",
		F:     func(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) },
		FLOPs: 5, From: -30, To: 30, Also: []float64{-1000, 0, 1000},
	},
	{
		Error: reference.Tolerance{
			Rel: reference.ULPs(4.5),
			Why: "WGSL allows the same error in sqrt(x) as in 1 / inverseSqrt(x)",
		},
		Kind: "sqrt", doc: "y = sqrt(x), for x >= 0", WGSL: "sqrt(v)", F: math.Sqrt, FLOPs: 1,
		From: 0, To: 1000,
		Also: []float64{0, 1, 1e30},
	},
	{
		Error: reference.Tolerance{Abs: 1e-5, Why: "WGSL allows an error of 1e-5 in tanh"},
		Kind:  "tanh", doc: "y = tanh x",
		// x is clamped because some drivers compute tanh with exponentials, which overflow for large x.
		WGSL: "select(tanh(clamp(v, $T(-15.0), $T(15.0))), v, is_nan(v))", needs: isNaNWGSL,
		F: math.Tanh, FLOPs: 5, From: -20, To: 20,
		Also: []float64{-1000, 0, 1000, math.NaN(), math.Inf(1), math.Inf(-1)},
	},
}

// UnaryRow describes an operator on one tensor.
type UnaryRow struct {
	Kind string
	of   string // name of the Go constructor, or empty
	doc  string
	// WGSL is a WGSL expression that computes y from v. needs is the WGSL source of the functions that the
	// expression calls. Both work on f32 or on vec4<f32>. The placeholder $T is this type. $B and $U are the
	// types of bool and u32 with the same number of components.
	WGSL, needs string
	F           func(x float64) float64
	FLOPs       int // floating-point operations for each element
	// Error is the tolerance of y. ErrorOfX is an additional tolerance, relative to the largest |x|.
	Error    reference.Tolerance
	ErrorOfX float64
	// Tests draw random values of x, between From and To. Tests also use the values in Also.
	From, To float64
	Also     []float64
	// Or is a second function that this kind of operator can compute, or nil. Or.When is the name of a
	// boolean argument of the operator. If this argument is true, the operator computes Or instead, and its
	// kernel is named Or.Kind.
	Or   *UnaryRow
	When string
}

// isNaNWGSL is the WGSL source of is_nan. It tests the bits of a number. A WGSL compiler may assume that no
// number is NaN, and then it would remove a test such as v != v.
const isNaNWGSL = `
fn is_nan(v: $T) -> $B {
  return (bitcast<$U>(v) & $U(0x7fffffffu)) > $U(0x7f800000u);
}
`

// sineTolerance is the tolerance of sin and cos. WGSL allows this error for arguments from -pi to pi.
var sineTolerance = reference.Tolerance{Abs: 0x1p-11, Why: "WGSL allows an error of 2^-11 in sin and cos"}

// turnsWGSL is the WGSL source of a function that brings an argument of sin or cos into the range from -pi
// to pi. Only in this range does WGSL limit the error of sin and cos. The function subtracts a multiple of 2
// pi in two parts, 6.28125 and 2 pi - 6.28125. The product with 6.28125 is exact for up to 2^16 turns.
const turnsWGSL = `
fn subtract_whole_turns(v: $T) -> $T {
  let turns = round(v * 0.15915494309189535);
  return (v - turns * 6.28125) - turns * 0.0019353071795864769;
}
`

const erfWGSL = `
// Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26. The error is at most 1.5e-7.
fn erf(v: $T) -> $T {
  let t = 1.0 / (1.0 + 0.3275911 * abs(v));
  let poly = t * (0.254829592 +
    t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
  return sign(v) * (1.0 - poly * exp(-v * v));
}
`

// Sigmoid adds sigmoid: y = 1 / (1 + exp(-x)), element by element. y has the dims of x.
func Sigmoid(b *graph.Builder, name string, x graph.ValueID) graph.ValueID {
	return member("sigmoid").BuildOne(b, name, kind.Args{"x": x})
}

// SiLU adds silu: y = x / (1 + exp(-x)), element by element. y has the dims of x.
func SiLU(b *graph.Builder, name string, x graph.ValueID) graph.ValueID {
	return member("silu").BuildOne(b, name, kind.Args{"x": x})
}

// GELU adds gelu, element by element: y = x * Phi(x), where Phi is the cumulative distribution function of
// the normal distribution. If `tanh` is true, it uses the approximation y = x/2 * (1 + tanh(sqrt(2/pi) * (x +
// 0.044715 x^3))). y has the dims of x.
//
// Phi is computed with an approximation of erf, whose error is at most 1.5e-7. Source: Hendrycks and Gimpel,
// Gaussian Error Linear Units (2016).
func GELU(b *graph.Builder, name string, x graph.ValueID, tanh bool) graph.ValueID {
	return member("gelu").BuildOne(b, name, kind.Args{"x": x, "tanh": tanh})
}

var kindsOfUnaries = kind.Each(Unaries, func(r *UnaryRow) kind.Kind {
	k := kind.Kind{
		Name: r.Kind, Doc: r.doc + ", element by element.", Args: []kind.Arg{kind.Required("x",
			kind.F32Tensor)},
		Constructors: Constructors(r.of), Add: r.add,
	}
	if r.Or != nil {
		k.Args = append(k.Args, kind.Arg{Name: r.Or.When, Type: kind.BoolType, Default: false})
		k.Doc = r.doc + ", element by element. " + r.Or.doc + "."
	}
	return k
})

func (r *UnaryRow) add(c *kind.Call) []graph.ValueID {
	x := c.ArgTensor("x")
	o := &UnaryOp{UnaryRow: r, kind: r.Kind, X: x, Y: c.Out("", graph.F32), Vec: kind.Vec(c.Builder, x, -1)}
	if r.Or != nil && c.ArgBool(r.Or.When) {
		o.UnaryRow = r.Or
	}
	o.NewKernel = kind.NewKernelAs(c.Builder, o.UnaryRow.Kind, "unary", shaders.Constants{
		"Op": o.UnaryRow.Kind, "Expr": OfElements(o.WGSL, o.Vec), "Needs": OfElements(o.needs, o.Vec),
		"Lanes": kind.ThreadLanes, "Vec": o.Vec,
	})
	return c.AddOp(o, o.Y)
}

// OfElements replaces the placeholders in WGSL source by types with vec components, where vec is 1 or 4.
// UnaryRow explains the placeholders.
func OfElements(wgsl string, vec int) shaders.Text {
	types := strings.NewReplacer("$T", "f32", "$B", "bool", "$U", "u32")
	if vec == 4 {
		types = strings.NewReplacer("$T", "vec4<f32>", "$B", "vec4<bool>", "$U", "vec4<u32>")
	}
	return shaders.Text(types.Replace(wgsl))
}

// Constructors returns the list of Go constructors for a row of a table: name, or nothing if `name` is empty.
func Constructors(name string) []string {
	if name == "" {
		return nil
	}
	return []string{name}
}

// UnaryOp is an operator that computes each element of Y from one element of X.
type UnaryOp struct {
	*UnaryRow
	kind      string
	X, Y      graph.ValueID
	NewKernel *graph.Kernel
	Vec       int
}

func (o *UnaryOp) Spec() graph.Spec {
	s := graph.Spec{
		Kind: o.kind, Inputs: []graph.ValueID{o.X}, Outputs: []graph.ValueID{o.Y},
		Slots: []graph.Slot{{Uses: kind.Uses(o.NewKernel, graph.Bind("x", o.X), graph.Bind("y", o.Y))}},
	}
	if o.When != "" {
		s.Attrs = map[string]any{"approximate": o.When}
	}
	return s
}

func (o *UnaryOp) Corners(r *graph.Ranges) []graph.Corner { return r.Ends(o.X) }

func (o *UnaryOp) Plan(p *graph.Planner) error {
	n := p.Numel(o.X)
	p.SetDims(o.Y, p.Dims(o.X)...)
	l := p.Dispatch(0, p.Vectors(n, o.Vec, kind.ThreadLanes))
	l.Params.U32("n", n/o.Vec)
	l.Bytes, l.FLOPs = 8*int64(n), int64(o.FLOPs)*int64(n)
	return nil
}

func (o *UnaryOp) Reference(r *reference.Ref) {
	x := r.Tensor(o.X)
	y := r.Result(o.Y, x.Dims...)
	rows, _ := x.Rows()
	for i := range r.Rows(o.Y, rows) {
		for j, v := range x.Row(i) {
			y.Row(i)[j] = o.F(v)
		}
	}
	r.Set(o.Y, y)
}

func (o *UnaryOp) Tolerance(r *reference.Ref, _ graph.ValueID) reference.Tolerance {
	t := o.Error
	t.Abs += o.ErrorOfX * r.Largest(o.X)
	return t
}
