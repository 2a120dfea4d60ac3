package ops

import (
	"gpuscope/engine/graph"
	"gpuscope/ops/basic"
	"gpuscope/ops/internal/shape"
	"gpuscope/ops/kind"
	"gpuscope/ops/reference"
)

// ApplyRotaryEmbHF adds apply_rotary_emb_hf, which applies RoPE to elements that are half a head apart: it
// rotates the pairs (x[j], x[j+R/2]) of the first R elements of each head of q and of k. The tables cos and
// sin have a row for every position. The operator uses S rows, beginning with the row `start`.
//
//	y[j] = x[j] cos[j] - x[j+h] sin[j],  y[j+h] = x[j+h] cos[j+h] + x[j] sin[j+h],  h = R/2
//
//	q           [..., S, heads, D], D even; or [1, heads, D] for the last position only
//	k           [..., S, kv heads, D]; or None, to rotate q only
//	cos, sin    [positions, R], start + S <= positions, R even and at most D
//	yq, yk      dims of q and k; the elements from R on are copied from q and k
//
// Source: RoFormer, in the variant of Hugging Face's models, which rotate elements that are half a head
// apart.
func ApplyRotaryEmbHF(b *graph.Builder, name string, q, k, cos, sin graph.ValueID, start kind.Int) (yq,
	yk graph.ValueID,
) {
	return kindRotaryHF.BuildTwo(b, name, kind.Args{
		"q": q, "k": k, "cos": cos, "sin": sin,
		"start_pos": start,
	})
}

var kindRotaryHF = kind.Kind{
	Name: "apply_rotary_emb_hf",
	Doc:  "Applies RoPE to pairs of elements that are half a head apart, in each head of q and k.",
	Args: []kind.Arg{
		kind.Required("q", kind.F32Tensor),
		kind.Optional("k", kind.F32Tensor, graph.None),
		kind.Required("cos", kind.F32Tensor),
		kind.Required("sin", kind.F32Tensor),
		kind.Required("start_pos", kind.SymIntType),
	},
	Constructors: []string{"ApplyRotaryEmbHF"}, Add: addRotaryHF,
}

func addRotaryHF(c *kind.Call) []graph.ValueID {
	o := &rotaryHF{turned: turnedOf(c), start: c.ArgSym("start_pos")}
	o.Vec = 1
	heads, turned := shape.Last(c.MaxDims(o.q)), shape.Last(c.MaxDims(o.cos))
	if heads%8 == 0 && turned%8 == 0 && kind.Vec(c.Builder, o.cos, -1) == 4 {
		o.Vec = min(kind.Vec(c.Builder, o.q, -1), kind.Vec(c.Builder, o.all(), -1))
	}
	o.makeKernel(c.Builder)
	return c.AddOp(o, o.outputs()...)
}

type rotaryHF struct {
	turned
	start kind.Int
}

func (o *rotaryHF) Spec() graph.Spec {
	return graph.Spec{
		Kind: "apply_rotary_emb_hf", Inputs: kind.Operands(o.inputs(), o.start),
		Outputs: o.outputs(),
		Slots:   o.slots(),
		Attrs:   map[string]any{"start_pos": o.start.Attr()},
	}
}

// Corners returns a corner with the longest q and k and a corner with the shortest q and k. Both corners use
// the smallest start, because it is the only start at which the longest q and k are legal. The shortest q and
// k are legal at any start.
func (o *rotaryHF) Corners(r *graph.Ranges) []graph.Corner {
	first, _ := o.start.Span(r)
	list := r.Ends(o.inputs()...)
	for i := range list {
		list[i] = append(list[i], o.start.Set(first)...)
	}
	return list
}

func (o *rotaryHF) Plan(p *graph.Planner) error {
	if err := o.check(p); err != nil {
		return err
	}
	o.turn(p)
	return nil
}

func (o *rotaryHF) check(p *graph.Planner) error {
	positions, d, err := rotaryDims(p, o.q, o.all())
	if err != nil {
		return err
	}
	start, turned := o.start.At(p), shape.Last(p.Dims(o.cos))
	for _, table := range [2]graph.ValueID{o.cos, o.sin} {
		t := p.Dims(table)
		fits := len(t) == 2 && t[1] == turned && start >= 0 && start+positions <= t[0]
		if !fits || turned > d || turned%2 != 0 {
			return p.Errorf("cos or sin has dims %v; both need the same even number of columns, at most %d, and "+
				"rows for positions %d to %d", t, d, start, start+positions-1)
		}
	}
	return nil
}

func (o *rotaryHF) turn(p *graph.Planner) {
	o.give(p)
	start, turned := o.start.At(p), shape.Last(p.Dims(o.cos))
	for slot := range o.launches() {
		o.launch(p, slot, 2*o.Vec, turned).Params.U32("half", turned/2/o.Vec).U32("start", start)
	}
}

func (o *rotaryHF) Reference(r *reference.Ref) {
	cos, sin, start := r.Tensor(o.cos), r.Tensor(o.sin), o.start.In(r)
	half := shape.Last(cos.Dims) / 2
	o.heads(r, func(x, y []float64, position int) {
		c, s := cos.Row(start+position), sin.Row(start+position)
		copy(y, x)
		for j := range half {
			y[j] = x[j]*c[j] - x[j+half]*s[j]
			y[j+half] = x[j+half]*c[j+half] + x[j]*s[j+half]
		}
	})
}

func (o *rotaryHF) Tolerance(*reference.Ref, graph.ValueID) reference.Tolerance {
	return basic.TurnedPairs
}
