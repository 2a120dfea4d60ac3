package ops

import (
	"math"

	"gpuscope/engine"
	"gpuscope/shaders"
)

// SiLUMul adds silu_mul: y = gate / (1 + exp(-gate)) * up, element by element. Upstream makes it of sigmoid,
// mul and mul (silu_mul_fused).
//
//	gate, up  same dims
//	y         their dims
//
// Source: Shazeer, GLU Variants Improve Transformer (2020), SwiGLU.
func SiLUMul(b *engine.Builder, name string, gate, up engine.ValueID) engine.ValueID {
	return kindSiLUMul.one(b, name, Args{"gate": gate, "up": up})
}

var kindSiLUMul = Kind{
	Name: "silu_mul", Doc: "y = gate / (1 + exp(-gate)) * up, element by element.",
	Args:         []Arg{{"gate", f32Tensor, nil}, {"up", f32Tensor, nil}},
	Constructors: []string{"SiLUMul"}, add: addSiLUMul,
}

func addSiLUMul(c *call) []engine.ValueID {
	gate, up := c.tensor("gate"), c.tensor("up")
	o := &siluMul{
		gate: gate, up: up, y: c.out("", engine.F32),
		vec: min(vec(c.Builder, gate, -1), vec(c.Builder, up, -1)),
	}
	o.kernel = c.kernel("silu_mul", shaders.Constants{"Lanes": threadLanes, "Vec": o.vec})
	return c.adds(o, o.y)
}

type siluMul struct {
	gate, up, y engine.ValueID
	kernel      *engine.Kernel
	vec         int
}

func (o *siluMul) Spec() engine.Spec {
	return engine.Spec{
		Kind: "silu_mul", Inputs: []engine.ValueID{o.gate, o.up}, Outputs: []engine.ValueID{o.y},
		Slots: []engine.Slot{{Uses: one(o.kernel, bind("gate", o.gate), bind("up", o.up), bind("y", o.y))}},
	}
}

func (o *siluMul) Corners(r *engine.Ranges) []engine.Corner { return r.Ends(o.gate, o.up) }

func (o *siluMul) Plan(p *engine.Planner) error {
	if !sameDims(p.Dims(o.gate), p.Dims(o.up)) {
		return p.Errorf("gate is %v, up is %v, want the same", p.Dims(o.gate), p.Dims(o.up))
	}
	n := p.Numel(o.gate)
	p.SetDims(o.y, p.Dims(o.gate)...)
	l := p.Dispatch(0, p.Vectors(n, o.vec, threadLanes))
	l.Params.U32("n", n/o.vec)
	l.Bytes, l.FLOPs = 12*int64(n), 4*int64(n)
	return nil
}

func (o *siluMul) Reference(r *Ref) {
	gate, up := r.Tensor(o.gate), r.Tensor(o.up)
	y := r.result(o.y, gate.Dims...)
	rows, _ := gate.rows()
	for i := range r.rows(o.y, rows) {
		for j, g := range gate.row(i) {
			y.row(i)[j] = g / (1 + math.Exp(-g)) * up.row(i)[j]
		}
	}
	r.Set(o.y, y)
}

// Tolerance is that of exp, and of a quotient and a product.
func (o *siluMul) Tolerance(*Ref, engine.ValueID) Tolerance { return expTolerance }
