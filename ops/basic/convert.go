package basic

import (
	"math"

	"gpuscope/engine/graph"
	"gpuscope/ops/kind"
	"gpuscope/ops/reference"
	"gpuscope/shaders"
)

// Conversions lists the operators that change the element type of a tensor.
var Conversions = []Conversion{
	{
		Kind: "to_f32", doc: "Converts the integers of x to f32, with one rounding.",
		from: kind.I32Tensor, to: graph.F32, f: func(x float64) float64 { return x },
		Error: reference.OneRounding,
	},
	{
		Kind: "to_i32",
		doc:  "Converts the floats of x to i32: rounds them towards 0 and clamps them to the range of i32.",
		from: kind.F32Tensor, to: graph.I32,
		f:     func(x float64) float64 { return math.Trunc(min(max(x, math.MinInt32), 0x7fffff80)) },
		Error: reference.Exact,
	},
}

// Conversion describes an operator that changes the element type.
type Conversion struct {
	Kind, doc string
	from      kind.ArgType
	to        graph.DType
	f         func(x float64) float64
	Error     reference.Tolerance
}

var kindsOfConversions = kind.Each(Conversions, func(r *Conversion) kind.Kind {
	return kind.Kind{
		Name: r.Kind, Doc: r.doc, Args: []kind.Arg{kind.Required("x", r.from)},
		Add: func(c *kind.Call) []graph.ValueID {
			o := &conversion{Conversion: r, x: c.ArgTensor("x"), y: c.Out("", r.to)}
			o.kernel = kind.NewKernelAs(c.Builder, r.Kind, "convert",
				shaders.Constants{"Lanes": kind.ThreadLanes, "ToFloat": r.to == graph.F32})
			return c.AddOp(o, o.y)
		},
	}
})

type conversion struct {
	*Conversion
	x, y   graph.ValueID
	kernel *graph.Kernel
}

func (o *conversion) Spec() graph.Spec {
	return graph.Spec{
		Kind: o.Kind, Inputs: []graph.ValueID{o.x}, Outputs: []graph.ValueID{o.y},
		Slots: []graph.Slot{{Uses: kind.Uses(o.kernel, graph.Bind("x", o.x), graph.Bind("y", o.y))}},
	}
}

func (o *conversion) Corners(r *graph.Ranges) []graph.Corner { return r.Ends(o.x) }

func (o *conversion) Plan(p *graph.Planner) error {
	n := p.Numel(o.x)
	p.SetDims(o.y, p.Dims(o.x)...)
	l := p.Dispatch(0, p.Vectors(n, 1, kind.ThreadLanes))
	l.Params.U32("n", n)
	l.Bytes = 8 * int64(n)
	return nil
}

func (o *conversion) Reference(r *reference.Ref) {
	x := r.Tensor(o.x)
	y := reference.Zeros(x.Dims...)
	for i, v := range x.Data {
		y.Data[i] = o.f(v)
	}
	r.Set(o.y, y)
}

func (o *conversion) Tolerance(*reference.Ref, graph.ValueID) reference.Tolerance { return o.Error }
