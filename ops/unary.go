package ops

import (
	"math"

	"gpuscope/engine"
	"gpuscope/shaders"
)

// Sigmoid adds sigmoid: y = 1 / (1 + exp(-x)), element by element. y has the dims of x.
func Sigmoid(b *engine.Builder, name string, x engine.ValueID) engine.ValueID {
	return addUnary(b, name, "sigmoid", "sigmoid", x)
}

// SiLU adds silu: y = x / (1 + exp(-x)), element by element. y has the dims of x.
func SiLU(b *engine.Builder, name string, x engine.ValueID) engine.ValueID {
	return addUnary(b, name, "silu", "silu", x)
}

// GELU adds gelu, element by element: y = x * Phi(x), Phi being the normal distribution's, or with tanh its
// approximation y = x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))). y has the dims of x.
//
// Phi goes through an erf that is off by 1.5e-7 at most. Source: Hendrycks and Gimpel, Gaussian Error Linear
// Units (2016).
func GELU(b *engine.Builder, name string, x engine.ValueID, tanh bool) engine.ValueID {
	fn := "gelu"
	if tanh {
		fn = "gelu_tanh"
	}
	return addUnary(b, name, "gelu", fn, x)
}

// unaries are the functions of the kernel shaders/unary.wgsl, in float64, and the operations one takes as a
// GPU is counted.
var unaries = map[string]struct {
	f     func(x float64) float64
	flops int
}{
	"sigmoid": {func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }, 3},
	"silu":    {func(x float64) float64 { return x / (1 + math.Exp(-x)) }, 3},
	"gelu":    {func(x float64) float64 { return x / 2 * (1 + math.Erf(x/math.Sqrt2)) }, 16},
	"gelu_tanh": {func(x float64) float64 {
		return x / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
	}, 10},
}

// threadLanes is the workgroup size of the kernels in which each invocation works alone.
const threadLanes = 64

func addUnary(b *engine.Builder, name, kind, fn string, x engine.ValueID) engine.ValueID {
	if !ready(b, x) {
		return engine.None
	}
	o := &unary{kind: kind, fn: fn, x: x, y: b.Tensor(name, engine.F32), vec: vec(b, x, -1)}
	o.kernel = kernelAs(b, fn, "unary", shaders.Constants{"Op": fn, "Lanes": threadLanes, "Vec": o.vec})
	b.Add(name, o)
	return o.y
}

type unary struct {
	kind, fn string
	x, y     engine.ValueID
	kernel   *engine.Kernel
	vec      int
}

func (o *unary) Spec() engine.Spec {
	s := engine.Spec{
		Kind: o.kind, Inputs: []engine.ValueID{o.x}, Outputs: []engine.ValueID{o.y},
		Slots: []engine.Slot{{Uses: one(o.kernel, bind("x", o.x), bind("y", o.y))}},
	}
	if o.fn != o.kind {
		s.Attrs = map[string]any{"approximate": "tanh"}
	}
	return s
}

func (o *unary) Corners(r *engine.Ranges) []engine.Corner { return r.Ends(o.x) }

func (o *unary) Plan(p *engine.Planner) error {
	n := p.Numel(o.x)
	p.SetDims(o.y, p.Dims(o.x)...)
	l := p.Dispatch(0, p.Threads(n/o.vec, threadLanes))
	l.Params.U32("n", n/o.vec)
	l.Bytes, l.FLOPs = 8*int64(n), int64(unaries[o.fn].flops)*int64(n)
	return nil
}

func (o *unary) Reference(r *Ref) {
	x := r.Tensor(o.x)
	y := x.like()
	for i, v := range x.Data {
		y.Data[i] = unaries[o.fn].f(v)
	}
	r.Set(o.y, y)
}
