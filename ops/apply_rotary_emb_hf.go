package ops

import (
	"gpuscope/engine/graph"
)

// ApplyRotaryEmbHF adds apply_rotary_emb_hf: it turns the pairs (x[j], x[j+R/2]) of the first R elements of
// each head of q and of k, with tables for all positions of which those from start on are used,
//
//	y[j] = x[j] cos[j] - x[j+h] sin[j],  y[j+h] = x[j+h] cos[j+h] + x[j] sin[j+h],  h = R/2
//
//	q           [..., S, heads, D], D even, or [1, heads, D] of the last position alone
//	k           [..., S, kv heads, D]
//	cos, sin    [positions, R], start + S <= positions, R even and at most D
//	yq, yk      dims of q and k; elements from R on are those of q and k
//
// Source: RoFormer in the form of Hugging Face's models, which have the two of a pair half a head apart.
func ApplyRotaryEmbHF(b *graph.Builder, name string, q, k, cos, sin graph.ValueID, start Int) (yq,
	yk graph.ValueID,
) {
	return kindRotaryHF.two(b, name, Args{"q": q, "k": k, "cos": cos, "sin": sin, "start_pos": start})
}

var kindRotaryHF = Kind{
	Name: "apply_rotary_emb_hf",
	Doc:  "Turns what lies half a head apart in each head of q and k by the angle of their position.",
	Args: []Arg{
		{"q", f32Tensor, nil},
		{"k", f32Tensor, nil},
		{"cos", f32Tensor, nil},
		{"sin", f32Tensor, nil},
		{"start_pos", symIntType, nil},
	},
	Constructors: []string{"ApplyRotaryEmbHF"}, add: addRotaryHF,
}

func addRotaryHF(c *call) []graph.ValueID {
	o := &rotaryHF{turned: turnedOf(c), start: c.sym("start_pos")}
	o.vec = 1
	heads, turned := last(c.MaxDims(o.q)), last(c.MaxDims(o.cos))
	if heads%8 == 0 && turned%8 == 0 && vec(c.Builder, o.cos, -1) == 4 {
		o.vec = min(vec(c.Builder, o.q, -1), vec(c.Builder, o.k, -1))
	}
	o.makeKernel(c.Builder)
	return c.adds(o, o.yq, o.yk)
}

type rotaryHF struct {
	turned
	start Int
}

func (o *rotaryHF) Spec() graph.Spec {
	return graph.Spec{
		Kind: "apply_rotary_emb_hf", Inputs: args([]graph.ValueID{o.q, o.k, o.cos, o.sin}, o.start),
		Outputs: []graph.ValueID{o.yq, o.yk},
		Slots:   o.slots(),
		Attrs:   map[string]any{"start_pos": o.start.attr()},
	}
}

// Corners: the longest x is legal at the first start, the shortest anywhere.
func (o *rotaryHF) Corners(r *graph.Ranges) []graph.Corner {
	first, _ := o.start.span(r)
	list := r.Ends(o.q, o.k, o.cos, o.sin)
	for i := range list {
		list[i] = append(list[i], o.start.set(first)...)
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
	positions, d, err := rotaryDims(p, o.q, o.k)
	if err != nil {
		return err
	}
	start, turned := o.start.at(p), last(p.Dims(o.cos))
	for _, table := range [2]graph.ValueID{o.cos, o.sin} {
		t := p.Dims(table)
		fits := len(t) == 2 && t[1] == turned && start >= 0 && start+positions <= t[0]
		if !fits || turned > d || turned%2 != 0 {
			return p.Errorf("a table is %v, want %d columns (an even number of at most %d in both) and rows "+
				"for positions %d to %d", t, min(turned, d), d, start, start+positions-1)
		}
	}
	return nil
}

func (o *rotaryHF) turn(p *graph.Planner) {
	o.give(p)
	start, turned := o.start.at(p), last(p.Dims(o.cos))
	for slot := range o.launches() {
		o.launch(p, slot, 2*o.vec, turned).Params.U32("half", turned/2/o.vec).U32("start", start)
	}
}

func (o *rotaryHF) Reference(r *Ref) {
	cos, sin, start := r.Tensor(o.cos), r.Tensor(o.sin), o.start.in(r)
	half := last(cos.Dims) / 2
	o.heads(r, func(x, y []float64, position int) {
		c, s := cos.row(start+position), sin.row(start+position)
		copy(y, x)
		for j := range half {
			y[j] = x[j]*c[j] - x[j+half]*s[j]
			y[j+half] = x[j+half]*c[j+half] + x[j]*s[j+half]
		}
	})
}

func (o *rotaryHF) Tolerance(*Ref, graph.ValueID) Tolerance { return turnedPairs }
