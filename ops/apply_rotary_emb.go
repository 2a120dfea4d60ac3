package ops

import (
	"gpuscope/engine"
	"gpuscope/shaders"
)

// ApplyRotaryEmb adds apply_rotary_emb: it turns the pairs (x[2j], x[2j+1]) of each head of q and of k by the
// angle of their position and pair,
//
//	y[2j] = x[2j] cos - x[2j+1] sin,  y[2j+1] = x[2j] sin + x[2j+1] cos
//
//	q           [..., S, heads, D], D even
//	k           [..., S, kv heads, D]
//	cos, sin    [S, D/2], the rows of the live positions
//	yq, yk      dims of q and k
//
// q and k have a dispatch each, side by side. Source: Su et al., RoFormer (2021), in the form of Meta's Llama
// code, which has the two of a pair next to each other.
func ApplyRotaryEmb(b *engine.Builder, name string, q, k, cos, sin engine.ValueID) (yq, yk engine.ValueID) {
	return kindRotary.two(b, name, Args{"q": q, "k": k, "cos": cos, "sin": sin})
}

var kindRotary = Kind{
	Name: "apply_rotary_emb", Doc: "Turns neighbours in each head of q and k by the angle of their position.",
	Args: []Arg{
		{"q", f32Tensor, nil}, {"k", f32Tensor, nil}, {"cos", f32Tensor, nil}, {"sin", f32Tensor, nil},
	},
	Constructors: []string{"ApplyRotaryEmb"}, add: addRotary,
}

func addRotary(c *call) []engine.ValueID {
	o := &rotary{
		q: c.tensor("q"), k: c.tensor("k"), cos: c.tensor("cos"), sin: c.tensor("sin"),
		yq: c.out(".q", engine.F32), yk: c.out(".k", engine.F32),
	}
	o.vec = max(2, min(vec(c.Builder, o.q, -1), vec(c.Builder, o.k, -1)))
	o.kernel = c.kernel("apply_rotary_emb", shaders.Constants{"Lanes": threadLanes, "Vec": o.vec})
	return c.adds(o, o.yq, o.yk)
}

type rotary struct {
	q, k, cos, sin, yq, yk engine.ValueID
	kernel                 *engine.Kernel
	vec                    int
}

func (o *rotary) Spec() engine.Spec {
	return engine.Spec{
		Kind: "apply_rotary_emb", Inputs: []engine.ValueID{o.q, o.k, o.cos, o.sin},
		Outputs: []engine.ValueID{o.yq, o.yk},
		Slots: []engine.Slot{
			{Label: "q", Uses: o.uses(o.q, o.yq)},
			{Label: "k", Uses: o.uses(o.k, o.yk)},
		},
	}
}

func (o *rotary) uses(x, y engine.ValueID) []engine.Use {
	return one(o.kernel, bind("x", x), bind("cosine", o.cos), bind("sine", o.sin), bind("y", y))
}

func (o *rotary) Corners(r *engine.Ranges) []engine.Corner { return r.Ends(o.q, o.k, o.cos, o.sin) }

func (o *rotary) Plan(p *engine.Planner) error {
	positions, d, err := rotaryDims(p, o.q, o.k)
	if err != nil {
		return err
	}
	for _, table := range [2]engine.ValueID{o.cos, o.sin} {
		if t := p.Dims(table); len(t) != 2 || t[0] != positions || 2*t[1] != d {
			return p.Errorf("a table is %v, want [%d %d]", t, positions, d/2)
		}
	}
	o.plan(p, 0, o.q, o.yq)
	o.plan(p, 1, o.k, o.yk)
	return nil
}

// rotaryDims are the positions and the head dim that q and k have in common.
func rotaryDims(p *engine.Planner, q, k engine.ValueID) (positions, d int, err error) {
	qd, kd := p.Dims(q), p.Dims(k)
	if len(qd) < 3 || len(kd) < 3 {
		return 0, 0, p.Errorf("q is %v and k %v, want [..., positions, heads, head dim]", qd, kd)
	}
	positions, d = p.Dim(q, -3), p.Dim(q, -1)
	if d%2 != 0 {
		return 0, 0, p.Errorf("head dim %d, must be even", d)
	}
	if p.Dim(k, -3) != positions || p.Dim(k, -1) != d {
		return 0, 0, p.Errorf("q is %v and k %v, want the same positions and head dim", qd, kd)
	}
	return positions, d, nil
}

func (o *rotary) plan(p *engine.Planner, slot int, x, y engine.ValueID) {
	n, positions, heads, d := p.Numel(x), p.Dim(x, -3), p.Dim(x, -2), p.Dim(x, -1)
	p.SetDims(y, p.Dims(x)...)
	l := p.Dispatch(slot, p.Vectors(n, o.vec, threadLanes))
	l.Params.U32("n", n/o.vec).U32("position", heads*d/o.vec).U32("positions", positions).
		U32("head", d/o.vec)
	l.Bytes = 8*int64(n) + 4*int64(positions)*int64(d)
	l.FLOPs = 3 * int64(n)
}

func (o *rotary) Reference(r *Ref) {
	cos, sin := r.Tensor(o.cos), r.Tensor(o.sin)
	for _, side := range [][2]engine.ValueID{{o.q, o.yq}, {o.k, o.yk}} {
		x := r.Tensor(side[0])
		y := r.result(side[1], x.Dims...)
		heads, n := x.Dims[len(x.Dims)-2], cos.Dims[0]
		for row := range r.rows(side[1], len(x.Data)/last(x.Dims)) {
			s := row / heads % n
			in, out := x.row(row), y.row(row)
			for j, c := range cos.row(s) {
				out[2*j] = in[2*j]*c - in[2*j+1]*sin.row(s)[j]
				out[2*j+1] = in[2*j]*sin.row(s)[j] + in[2*j+1]*c
			}
		}
		r.Set(side[1], y)
	}
}

// turning is the tolerance of what turns pairs: a pair keeps its length, so that an element that has
// cancelled out is beside another that has not.
var turning = Tolerance{Row: 8 * rounding, Why: "two products and a sum in f32"}

func (o *rotary) Tolerance(*Ref, engine.ValueID) Tolerance { return turning }
