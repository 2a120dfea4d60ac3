package ops

import (
	"math"
	"strings"

	"gpuscope/engine/graph"
	"gpuscope/shaders"
)

// unaries are the family of operators that map each element by itself, a row each: kernel, reference, cost
// and tests follow from it.
var unaries = []unaryRow{
	{near: asItIs, kind: "abs", doc: "y = |x|", wgsl: "abs(v)", f: math.Abs, flops: 1, from: -1000, to: 1000},
	{
		near: expTolerance,
		kind: "exp", doc: "y = e^x", wgsl: "exp(v)", f: math.Exp, flops: 1, from: -20, to: 20,
		also: []float64{-1000, 0, 1000},
	},
	{
		near: asItIs,
		kind: "floor", doc: "y = the largest integer of at most x", wgsl: "floor(v)", f: math.Floor, flops: 1,
		from: -1000, to: 1000, also: []float64{-1, -0.5, 0, 2, 1e30},
	},
	{
		near: Tolerance{Rel: expTolerance.Rel, Why: "erf within 1.5e-7 of a factor, of x"}, nearX: 4e-7,
		kind: "gelu", of: "GELU", doc: "y = x * Phi(x), Phi being the normal distribution's",
		wgsl: "0.5 * v * (1.0 + erf(v * 0.70710678118654752))", needs: erfWGSL,
		f:     func(x float64) float64 { return x / 2 * (1 + math.Erf(x/math.Sqrt2)) },
		flops: 16, from: -60, to: 60, also: []float64{-1000, 0, 1000},
		or: &unaryRow{
			near: Tolerance{Rel: ulps(8), Why: "1 + tanh within 8 ulp, times x"}, nearX: ulps(8),
			kind: "gelu_tanh", when: "tanh",
			doc: "with tanh y = x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3)))",
			// tanh(u) = 1 - 2 / (exp(2 u) + 1), with u kept where exp does not overflow.
			wgsl: "0.5 * v * (2.0 - 2.0 / (exp(2.0 * clamp(0.79788456080286536 * " +
				"(v + 0.044715 * v * v * v), $T(-20.0), $T(20.0))) + 1.0))",
			f: func(x float64) float64 {
				return x / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
			},
			flops: 10, from: -60, to: 60, also: []float64{-1000, 0, 1000},
		},
	},
	{
		near: Tolerance{Rel: ulps(3), Abs: 0x1p-21, Why: "WGSL allows log 2^-21 around 1, else 3 ulp"},
		kind: "log", doc: "y = ln x, for x over 0", wgsl: "log(v)", f: math.Log, flops: 1,
		from: 1e-3, to: 1000,
		also: []float64{1, 1e-30, 1e30},
	},
	{
		near: asItIs,
		kind: "neg", doc: "y = -x", wgsl: "-v", f: func(x float64) float64 { return -x }, flops: 1,
		from: -1000, to: 1000,
	},
	{
		near: Tolerance{Rel: ulps(2.5), Why: "WGSL allows a quotient 2.5 ulp"},
		kind: "reciprocal", doc: "y = 1 / x", wgsl: "1.0 / v", f: func(x float64) float64 { return 1 / x },
		flops: 1, from: 1e-3, to: 1000, also: []float64{-1, -4e-3, 1e-30, 1e30},
	},
	{
		near: asItIs,
		kind: "relu", doc: "y = x where it is over 0, else 0; a NaN stays one",
		wgsl: "select(max(v, $T(0.0)), v, is_nan(v))", needs: isNaNWGSL,
		f: func(x float64) float64 {
			if x < 0 {
				return 0
			}
			return x
		},
		flops: 1, from: -1000, to: 1000, also: []float64{0, math.NaN(), math.Inf(1), math.Inf(-1)},
	},
	{
		near: Tolerance{Rel: ulps(2), Why: "WGSL allows inverseSqrt 2 ulp"},
		kind: "rsqrt", doc: "y = 1 / sqrt(x), for x over 0", wgsl: "inverseSqrt(v)",
		f: func(x float64) float64 { return 1 / math.Sqrt(x) }, flops: 1, from: 1e-3, to: 1000,
		also: []float64{1, 1e-30, 1e30},
	},
	{
		near: expTolerance,
		kind: "sigmoid", of: "Sigmoid", doc: "y = 1 / (1 + exp(-x))", wgsl: "1.0 / (1.0 + exp(-v))",
		f:     func(x float64) float64 { return 1 / (1 + math.Exp(-x)) },
		flops: 3, from: -60, to: 60, also: []float64{-1000, 0, 1000},
	},
	{
		near: Tolerance{
			Rel: expTolerance.Rel, Why: expTolerance.Why + "; x over more than 2^126 may be 0",
		},
		nearX: 0x1p-126,
		kind:  "silu", of: "SiLU", doc: "y = x / (1 + exp(-x))", wgsl: "v / (1.0 + exp(-v))",
		f:     func(x float64) float64 { return x / (1 + math.Exp(-x)) },
		flops: 3, from: -60, to: 60, also: []float64{-1000, 0, 1000},
	},
	{
		near: Tolerance{Rel: ulps(4.5), Why: "WGSL allows sqrt what a quotient by inverseSqrt is off"},
		kind: "sqrt", doc: "y = sqrt(x), for x of at least 0", wgsl: "sqrt(v)", f: math.Sqrt, flops: 1,
		from: 0, to: 1000,
		also: []float64{0, 1, 1e30},
	},
	{
		near: Tolerance{Abs: 1e-5, Why: "WGSL allows tanh 1e-5"},
		kind: "tanh", doc: "y = tanh x",
		// Some drivers make it of exponentials, which overflow far out, where it is 1 or -1.
		wgsl: "select(tanh(clamp(v, $T(-15.0), $T(15.0))), v, is_nan(v))", needs: isNaNWGSL,
		f: math.Tanh, flops: 5, from: -20, to: 20,
		also: []float64{-1000, 0, 1000, math.NaN(), math.Inf(1), math.Inf(-1)},
	},
}

type unaryRow struct {
	kind string
	of   string // the Go constructor, where there is one
	doc  string
	// wgsl is y of v, and needs are functions that it calls. Both are f32 or vec4<f32>: $T is that type, and
	// $B and $U are bool and u32 as many at a time.
	wgsl, needs string
	f           func(x float64) float64
	flops       int // that one takes as a GPU is counted
	// near is the tolerance of y, nearX what there is beside it as a part of the largest size of x.
	near  Tolerance
	nearX float64
	// The tests draw arguments between from and to, and add those of also.
	from, to float64
	also     []float64
	// or is another function of the same kind, under the name of its kernel, taken where the argument that it
	// calls when is true.
	or   *unaryRow
	when string
}

// isNaNWGSL looks at the bits: compilers may take it that nothing is NaN.
const isNaNWGSL = `
fn is_nan(v: $T) -> $B {
  return (bitcast<$U>(v) & $U(0x7fffffffu)) > $U(0x7f800000u);
}
`

const erfWGSL = `
// Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26: off by 1.5e-7 at most.
fn erf(v: $T) -> $T {
  let t = 1.0 / (1.0 + 0.3275911 * abs(v));
  let poly = t * (0.254829592 +
    t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
  return sign(v) * (1.0 - poly * exp(-v * v));
}
`

// Sigmoid adds sigmoid: y = 1 / (1 + exp(-x)), element by element. y has the dims of x.
func Sigmoid(b *graph.Builder, name string, x graph.ValueID) graph.ValueID {
	return KindOf("sigmoid").one(b, name, Args{"x": x})
}

// SiLU adds silu: y = x / (1 + exp(-x)), element by element. y has the dims of x.
func SiLU(b *graph.Builder, name string, x graph.ValueID) graph.ValueID {
	return KindOf("silu").one(b, name, Args{"x": x})
}

// GELU adds gelu, element by element: y = x * Phi(x), Phi being the normal distribution's, or with tanh its
// approximation y = x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))). y has the dims of x.
//
// Phi goes through an erf that is off by 1.5e-7 at most. Source: Hendrycks and Gimpel, Gaussian Error Linear
// Units (2016).
func GELU(b *graph.Builder, name string, x graph.ValueID, tanh bool) graph.ValueID {
	return KindOf("gelu").one(b, name, Args{"x": x, "tanh": tanh})
}

// threadLanes is the workgroup size of the kernels in which each invocation works alone.
const threadLanes = 64

var kindsOfUnaries = eachKind(unaries, func(r *unaryRow) Kind {
	k := Kind{
		Name: r.kind, Doc: r.doc + ", element by element.", Args: []Arg{{"x", f32Tensor, nil}},
		Constructors: constructors(r.of), add: r.add,
	}
	if r.or != nil {
		k.Args = append(k.Args, Arg{r.or.when, boolType, false})
		k.Doc = r.doc + "; " + r.or.doc + ", element by element."
	}
	return k
})

func (r *unaryRow) add(c *call) []graph.ValueID {
	x := c.tensor("x")
	o := &unary{unaryRow: r, kind: r.kind, x: x, y: c.out("", graph.F32), vec: vec(c.Builder, x, -1)}
	if r.or != nil && c.bool(r.or.when) {
		o.unaryRow = r.or
	}
	o.kernel = kernelAs(c.Builder, o.unaryRow.kind, "unary", shaders.Constants{
		"Op": o.unaryRow.kind, "Expr": ofElements(o.wgsl, o.vec), "Needs": ofElements(o.needs, o.vec),
		"Lanes": threadLanes, "Vec": o.vec,
	})
	return c.adds(o, o.y)
}

// ofElements is WGSL about elements, of which vec are taken at a time.
func ofElements(wgsl string, vec int) shaders.Text {
	types := strings.NewReplacer("$T", "f32", "$B", "bool", "$U", "u32")
	if vec == 4 {
		types = strings.NewReplacer("$T", "vec4<f32>", "$B", "vec4<bool>", "$U", "vec4<u32>")
	}
	return shaders.Text(types.Replace(wgsl))
}

// constructors is the list of a row's Go constructors: of one, or none.
func constructors(name string) []string {
	if name == "" {
		return nil
	}
	return []string{name}
}

type unary struct {
	*unaryRow
	kind   string
	x, y   graph.ValueID
	kernel *graph.Kernel
	vec    int
}

func (o *unary) Spec() graph.Spec {
	s := graph.Spec{
		Kind: o.kind, Inputs: []graph.ValueID{o.x}, Outputs: []graph.ValueID{o.y},
		Slots: []graph.Slot{{Uses: one(o.kernel, bind("x", o.x), bind("y", o.y))}},
	}
	if o.when != "" {
		s.Attrs = map[string]any{"approximate": o.when}
	}
	return s
}

func (o *unary) Corners(r *graph.Ranges) []graph.Corner { return r.Ends(o.x) }

func (o *unary) Plan(p *graph.Planner) error {
	n := p.Numel(o.x)
	p.SetDims(o.y, p.Dims(o.x)...)
	l := p.Dispatch(0, p.Vectors(n, o.vec, threadLanes))
	l.Params.U32("n", n/o.vec)
	l.Bytes, l.FLOPs = 8*int64(n), int64(o.flops)*int64(n)
	return nil
}

func (o *unary) Reference(r *Ref) {
	x := r.Tensor(o.x)
	y := r.result(o.y, x.Dims...)
	rows, _ := x.rows()
	for i := range r.rows(o.y, rows) {
		for j, v := range x.row(i) {
			y.row(i)[j] = o.f(v)
		}
	}
	r.Set(o.y, y)
}

func (o *unary) Tolerance(r *Ref, _ graph.ValueID) Tolerance {
	t := o.near
	t.Abs += o.nearX * r.largest(o.x)
	return t
}
