package basic

import (
	"math"

	"gpuscope/engine/graph"
	"gpuscope/engine/graph/grid"
	"gpuscope/ops/internal/shape"
	"gpuscope/ops/kind"
	"gpuscope/ops/reference"
	"gpuscope/shaders"
)

// ChooseQParamsAffine adds choose_qparams_affine, which computes a scale and a zero point for each row of x.
// With them, the row fits the integers from lo to hi. The range of a row always includes 0. The scale is at
// least eps.
//
//	x            [..., N]
//	scale, zero  dims of x without the last
//
// An element v becomes the integer round(v / scale) + zero. One workgroup computes each row.
func ChooseQParamsAffine(b *graph.Builder, name string, x graph.ValueID, lo, hi int, eps float32) (scale,
	zero graph.ValueID,
) {
	return kindChooseQParams.BuildTwo(b, name, kind.Args{
		"x": x, "quant_min": lo, "quant_max": hi,
		"eps": eps,
	})
}

var kindChooseQParams = kind.Kind{
	Name: "choose_qparams_affine",
	Doc: "Computes the scale and the zero point that map each row of x to a range of integers. The range of a " +
		"row always includes 0.",
	Args: []kind.Arg{
		kind.Required("x", kind.F32Tensor), kind.Required("quant_min", kind.IntType),
		kind.Required("quant_max", kind.IntType), kind.Optional("eps", kind.FloatType, 0x1p-23),
	},
	Constructors: []string{"ChooseQParamsAffine"}, Add: addChooseQParams,
}

// quantRange is a range of integers. f32 can represent each of them exactly.
type quantRange struct{ lo, hi int }

func readRange(c *kind.Call) (q quantRange, ok bool) {
	q = quantRange{c.ArgInt("quant_min"), c.ArgInt("quant_max")}
	if q.lo >= q.hi || q.lo < -1<<24 || q.hi > 1<<24 {
		c.Fail("quant_min is %d and quant_max is %d, want quant_min < quant_max, both from -2^24 to 2^24",
			q.lo, q.hi)
		return q, false
	}
	return q, true
}

func (q quantRange) limit(v float64) float64 { return min(max(v, float64(q.lo)), float64(q.hi)) }

func addChooseQParams(c *kind.Call) []graph.ValueID {
	x := c.ArgTensor("x")
	q, ok := readRange(c)
	eps := c.ArgFloat("eps")
	switch {
	case !ok:
		return nil
	case len(c.MaxDims(x)) == 0:
		return c.Fail("x has rank 0, want at least 1")
	case eps <= 0:
		return c.Fail("eps is %v, want a positive number", eps)
	}
	o := &chooseQParams{
		quantRange: q, x: x, scale: c.Out(".scale", graph.F32), zero: c.Out(".zero_point", graph.F32),
		eps: float32(eps),
	}
	o.lanes = kind.LanesFor(c.Builder, shape.Last(c.MaxDims(x)))
	o.kernel = c.NewKernel("choose_qparams_affine", shaders.Constants{"Lanes": o.lanes})
	return c.AddOp(o, o.scale, o.zero)
}

type chooseQParams struct {
	quantRange
	x, scale, zero graph.ValueID
	eps            float32
	lanes          int
	kernel         *graph.Kernel
}

func (o *chooseQParams) Spec() graph.Spec {
	return graph.Spec{
		Kind: "choose_qparams_affine", Inputs: []graph.ValueID{o.x},
		Outputs: []graph.ValueID{o.scale, o.zero},
		Slots: []graph.Slot{{
			Uses: kind.Uses(o.kernel, graph.Bind("x", o.x), graph.Bind("scale", o.scale),
				graph.Bind("zero_point", o.zero)),
		}},
		Attrs: map[string]any{"quant_min": o.lo, "quant_max": o.hi, "eps": o.eps},
	}
}

func (o *chooseQParams) Corners(r *graph.Ranges) []graph.Corner { return r.Ends(o.x) }

func (o *chooseQParams) Plan(p *graph.Planner) error {
	dims, n := p.Dims(o.x), p.Numel(o.x)
	width := shape.Last(dims)
	p.SetDims(o.scale, dims[:len(dims)-1]...)
	p.SetDims(o.zero, dims[:len(dims)-1]...)
	l := p.Dispatch(0, p.Rows(o.lanes, width, grid.RowsOf(n, width)))
	l.Params.U32("rows", n/width).U32("width", width).F32("quant_min", float32(o.lo)).
		F32("quant_max", float32(o.hi)).F32("eps", o.eps)
	l.Bytes, l.FLOPs = 4*int64(n)+8*int64(n/width), 2*int64(n)
	return nil
}

func (o *chooseQParams) Reference(r *reference.Ref) {
	x := r.Tensor(o.x)
	dims := x.Dims[:len(x.Dims)-1]
	scale, zero := reference.Zeros(dims...), reference.Zeros(dims...)
	for i := range scale.Data {
		above, below := 0.0, 0.0
		for _, v := range x.Row(i) {
			above, below = max(above, v), max(below, -v)
		}
		scale.Data[i] = max((above+below)/float64(o.hi-o.lo), float64(o.eps))
		zero.Data[i] = o.limit(float64(o.lo) + math.RoundToEven(below/scale.Data[i]))
	}
	r.Set(o.scale, scale)
	r.Set(o.zero, zero)
}

func (o *chooseQParams) Tolerance(_ *reference.Ref, v graph.ValueID) reference.Tolerance {
	if v == o.zero {
		return reference.Tolerance{
			Abs: 1,
			Why: "a quotient close to halfway between two integers can be rounded to either of them",
		}
	}
	return reference.Tolerance{
		Rel: 2*reference.Rounding + reference.ULPs(2.5), Why: "one rounding to f32, and a division with an error of 2.5 ulp",
	}
}

// QuantizeAffine adds quantize_affine, which rounds the elements of x to integers q from lo to hi, and
// subtracts the zero point: y = q - zero, where q is round(x / scale) + zero, limited to the range. Each
// row of x has a scale and a zero point, as ChooseQParamsAffine computes them.
//
//	x            [..., N]
//	scale, zero  dims of x without the last
//	y            dims of x
//
// y * scale is x, apart from the rounding. If a linear with 4-bit weights multiplies y instead of y * scale,
// it adds up integers, which f32 holds exactly. Multiplying its result by scale afterwards therefore has a
// smaller error.
func QuantizeAffine(b *graph.Builder, name string, x, scale, zero graph.ValueID, lo, hi int) graph.ValueID {
	return kindQuantizeAffine.BuildOne(b, name,
		kind.Args{"x": x, "scale": scale, "zero_point": zero, "quant_min": lo, "quant_max": hi})
}

var kindQuantizeAffine = kind.Kind{
	Name: "quantize_affine",
	Doc: "y = q - zero_point, where q is round(x / scale) + zero_point, limited to quant_min and quant_max. Each " +
		"row of x has its own scale and zero_point.",
	Args: []kind.Arg{
		kind.Required("x", kind.F32Tensor), kind.Required("scale", kind.F32Tensor),
		kind.Required("zero_point", kind.F32Tensor), kind.Required("quant_min", kind.IntType),
		kind.Required("quant_max", kind.IntType),
	},
	Constructors: []string{"QuantizeAffine"}, Add: addQuantizeAffine,
}

func addQuantizeAffine(c *kind.Call) []graph.ValueID {
	q, ok := readRange(c)
	if !ok {
		return nil
	}
	o := &quantizeAffine{
		quantRange: q, x: c.ArgTensor("x"), scale: c.ArgTensor("scale"), zero: c.ArgTensor("zero_point"),
		y: c.Out("", graph.F32),
	}
	if len(c.MaxDims(o.x)) == 0 {
		return c.Fail("x has rank 0, want at least 1")
	}
	o.kernel = c.NewKernel("quantize_affine", shaders.Constants{"Lanes": kind.ThreadLanes})
	return c.AddOp(o, o.y)
}

type quantizeAffine struct {
	quantRange
	x, scale, zero, y graph.ValueID
	kernel            *graph.Kernel
}

func (o *quantizeAffine) Spec() graph.Spec {
	return graph.Spec{
		Kind: "quantize_affine", Inputs: []graph.ValueID{o.x, o.scale, o.zero}, Outputs: []graph.ValueID{o.y},
		Slots: []graph.Slot{{
			Uses: kind.Uses(o.kernel, graph.Bind("x", o.x), graph.Bind("scale", o.scale),
				graph.Bind("zero_point", o.zero), graph.Bind("y", o.y)),
		}},
		Attrs: map[string]any{"quant_min": o.lo, "quant_max": o.hi},
	}
}

func (o *quantizeAffine) Corners(r *graph.Ranges) []graph.Corner { return r.Ends(o.x, o.scale, o.zero) }

func (o *quantizeAffine) Plan(p *graph.Planner) error {
	n := p.Numel(o.x)
	width := shape.Last(p.Dims(o.x))
	if rows := n / width; p.Numel(o.scale) != rows || p.Numel(o.zero) != rows {
		return p.Errorf("scale has dims %v and zero_point has dims %v, want one scale and one zero point for each row of x (dims %v)",
			p.Dims(o.scale), p.Dims(o.zero), p.Dims(o.x))
	}
	p.SetDims(o.y, p.Dims(o.x)...)
	l := p.Dispatch(0, p.Vectors(n, 1, kind.ThreadLanes))
	l.Params.U32("n", n).U32("width", width).F32("quant_min", float32(o.lo)).F32("quant_max", float32(o.hi))
	l.Bytes, l.FLOPs = 8*int64(n)+8*int64(n/width), 5*int64(n)
	return nil
}

func (o *quantizeAffine) Reference(r *reference.Ref) {
	x, scale, zero := r.Tensor(o.x), r.Tensor(o.scale), r.Tensor(o.zero)
	y := r.Result(o.y, x.Dims...)
	rows, _ := x.Rows()
	for i := range r.Rows(o.y, rows) {
		s, z := scale.Data[i], zero.Data[i]
		for j, v := range x.Row(i) {
			y.Row(i)[j] = o.limit(math.RoundToEven(v/s)+z) - z
		}
	}
	r.Set(o.y, y)
}

func (o *quantizeAffine) Tolerance(*reference.Ref, graph.ValueID) reference.Tolerance {
	return reference.Tolerance{Abs: 1, Why: "a quotient close to halfway between two integers can be rounded to either of them"}
}
