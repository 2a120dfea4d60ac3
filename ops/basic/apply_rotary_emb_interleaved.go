package basic

import (
	"gpuscope/engine/graph"
	"gpuscope/ops/kind"
	"gpuscope/ops/reference"
	"gpuscope/shaders"
)

// ApplyRotaryEmbInterleaved adds apply_rotary_emb_interleaved: it rotates the pairs (x[2j], x[2j+1]) of each
// row. The cosine and the sine of the angle are freqs[2j] and freqs[2j+1] of the same row.
//
//	x      [..., N, C], C even
//	freqs  [N, C], cosines in the even columns, sines in the odd columns
//	y      dims of x
func ApplyRotaryEmbInterleaved(b *graph.Builder, name string, x, freqs graph.ValueID) graph.ValueID {
	return kindRotaryInterleaved.BuildOne(b, name, kind.Args{"x": x, "freqs": freqs})
}

var kindRotaryInterleaved = kind.Kind{
	Name: "apply_rotary_emb_interleaved",
	Doc:  "Rotates pairs of neighboring elements in each row of x; freqs has a cosine and a sine for each pair.",
	Args: []kind.Arg{kind.Required("x", kind.F32Tensor), kind.Required("freqs", kind.F32Tensor)},

	Constructors: []string{"ApplyRotaryEmbInterleaved"}, Add: addRotaryInterleaved,
}

func addRotaryInterleaved(c *kind.Call) []graph.ValueID {
	o := &rotaryInterleaved{x: c.ArgTensor("x"), freqs: c.ArgTensor("freqs"), y: c.Out("", graph.F32)}
	o.NewKernel = c.NewKernel("apply_rotary_emb_interleaved", shaders.Constants{"Lanes": kind.ThreadLanes})
	return c.AddOp(o, o.y)
}

type rotaryInterleaved struct {
	x, freqs, y graph.ValueID
	NewKernel   *graph.Kernel
}

func (o *rotaryInterleaved) Spec() graph.Spec {
	return graph.Spec{
		Kind: "apply_rotary_emb_interleaved", Inputs: []graph.ValueID{o.x, o.freqs},
		Outputs: []graph.ValueID{o.y},
		Slots:   []graph.Slot{{Uses: kind.Uses(o.NewKernel, graph.Bind("x", o.x), graph.Bind("freqs", o.freqs), graph.Bind("y", o.y))}},
	}
}

func (o *rotaryInterleaved) Corners(r *graph.Ranges) []graph.Corner { return r.Ends(o.x, o.freqs) }

func (o *rotaryInterleaved) Plan(p *graph.Planner) error {
	x, freqs := p.Dims(o.x), p.Dims(o.freqs)
	if len(x) < 2 || len(freqs) != 2 || x[len(x)-2] != freqs[0] || x[len(x)-1] != freqs[1] ||
		freqs[1]%2 != 0 {
		return p.Errorf("x has dims %v and freqs has dims %v; want [..., N, C] for x and [N, C] for freqs, with C even", x, freqs)
	}
	n, period := p.Numel(o.x), p.Numel(o.freqs)
	p.SetDims(o.y, x...)
	l := p.Dispatch(0, p.Vectors(n, 2, kind.ThreadLanes))
	l.Params.U32("n", n/2).U32("period", period/2)
	l.Bytes, l.FLOPs = 8*int64(n)+4*int64(period), 3*int64(n)
	return nil
}

func (o *rotaryInterleaved) Reference(r *reference.Ref) {
	x, freqs := r.Tensor(o.x), r.Tensor(o.freqs)
	y := r.Result(o.y, x.Dims...)
	rows, _ := x.Rows()
	for i := range r.Rows(o.y, rows) {
		turn, in, out := freqs.Row(i%freqs.Dims[0]), x.Row(i), y.Row(i)
		for j := 0; j < len(in); j += 2 {
			c, s := turn[j], turn[j+1]
			out[j] = in[j]*c - in[j+1]*s
			out[j+1] = in[j]*s + in[j+1]*c
		}
	}
	r.Set(o.y, y)
}

func (o *rotaryInterleaved) Tolerance(*reference.Ref, graph.ValueID) reference.Tolerance {
	return TurnedPairs
}

// TurnedPairs is the tolerance of RoPE, relative to the largest element of the row. The two products in a
// rotated element can cancel out, and then the element is close to zero. But the other element of the pair is
// then large, because a rotation does not change the length of the pair.
var TurnedPairs = reference.Tolerance{Row: 8 * reference.Rounding, Why: "two products and their sum are rounded to f32"}
