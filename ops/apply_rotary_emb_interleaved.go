package ops

import (
	"gpuscope/engine"
	"gpuscope/shaders"
)

// ApplyRotaryEmbInterleaved adds apply_rotary_emb_interleaved: it turns the pairs (x[2j], x[2j+1]) of each
// row by the pair (cos, sin) at the same place of freqs.
//
//	x      [..., N, C], C even
//	freqs  [N, C], cosine and sine by turns
//	y      dims of x
func ApplyRotaryEmbInterleaved(b *engine.Builder, name string, x, freqs engine.ValueID) engine.ValueID {
	return kindRotaryInterleaved.one(b, name, Args{"x": x, "freqs": freqs})
}

var kindRotaryInterleaved = Kind{
	Name: "apply_rotary_emb_interleaved",
	Doc:  "Turns neighbours in each row of x by the cosine and sine at the same place of freqs.",
	Args: []Arg{{"x", f32Tensor, nil}, {"freqs", f32Tensor, nil}},

	Constructors: []string{"ApplyRotaryEmbInterleaved"}, add: addRotaryInterleaved,
}

func addRotaryInterleaved(c *call) []engine.ValueID {
	o := &rotaryInterleaved{x: c.tensor("x"), freqs: c.tensor("freqs"), y: c.out("", engine.F32)}
	o.kernel = c.kernel("apply_rotary_emb_interleaved", shaders.Constants{"Lanes": threadLanes})
	return c.adds(o, o.y)
}

type rotaryInterleaved struct {
	x, freqs, y engine.ValueID
	kernel      *engine.Kernel
}

func (o *rotaryInterleaved) Spec() engine.Spec {
	return engine.Spec{
		Kind: "apply_rotary_emb_interleaved", Inputs: []engine.ValueID{o.x, o.freqs},
		Outputs: []engine.ValueID{o.y},
		Slots:   []engine.Slot{{Uses: one(o.kernel, bind("x", o.x), bind("freqs", o.freqs), bind("y", o.y))}},
	}
}

func (o *rotaryInterleaved) Corners(r *engine.Ranges) []engine.Corner { return r.Ends(o.x, o.freqs) }

func (o *rotaryInterleaved) Plan(p *engine.Planner) error {
	x, freqs := p.Dims(o.x), p.Dims(o.freqs)
	if len(x) < 2 || len(freqs) != 2 || x[len(x)-2] != freqs[0] || x[len(x)-1] != freqs[1] ||
		freqs[1]%2 != 0 {
		return p.Errorf("x is %v and freqs %v, want [..., N, C] and [N, C] with C even", x, freqs)
	}
	n, period := p.Numel(o.x), p.Numel(o.freqs)
	p.SetDims(o.y, x...)
	l := p.Dispatch(0, p.Vectors(n, 2, threadLanes))
	l.Params.U32("n", n/2).U32("period", period/2)
	l.Bytes, l.FLOPs = 8*int64(n)+4*int64(period), 3*int64(n)
	return nil
}

func (o *rotaryInterleaved) Reference(r *Ref) {
	x, freqs := r.Tensor(o.x), r.Tensor(o.freqs)
	y := r.result(o.y, x.Dims...)
	rows, _ := x.rows()
	for i := range r.rows(o.y, rows) {
		turn, in, out := freqs.row(i%freqs.Dims[0]), x.row(i), y.row(i)
		for j := 0; j < len(in); j += 2 {
			c, s := turn[j], turn[j+1]
			out[j] = in[j]*c - in[j+1]*s
			out[j+1] = in[j]*s + in[j+1]*c
		}
	}
	r.Set(o.y, y)
}

func (o *rotaryInterleaved) Tolerance(*Ref, engine.ValueID) Tolerance { return turnedPairs }
