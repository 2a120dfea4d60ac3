package ops

import (
	"fmt"
	"math"

	"gpuscope/engine"
	"gpuscope/shaders"
)

// RMSNorm adds rms_norm: y = x / sqrt(mean(x^2) + eps) * weight over the last dim.
//
//	x      [..., D]
//	weight [D], constant
//	y      dims of x
//
// A workgroup takes a row, its lanes stride over it, and the sum of squares is reduced in workgroup memory;
// four elements at a time where 4 divides D. Source: Zhang and Sennrich, Root Mean Square Layer Normalization
// (2019), equation 4.
func RMSNorm(b *engine.Builder, name string, x, weight engine.ValueID, eps float32) engine.ValueID {
	return kindRMSNorm.one(b, name, Args{"x": x, "weight": weight, "eps": eps})
}

var kindRMSNorm = Kind{
	Name: "rms_norm", Doc: "y = x / sqrt(mean(x^2) + eps) * weight over the last dim.",
	Args:         []Arg{{"x", f32Tensor, nil}, {"weight", f32Tensor, nil}, {"eps", floatType, nil}},
	Constructors: []string{"RMSNorm"}, Routes: rmsNormRouteNames, add: addRMSNorm,
}

// rmsNormRouteNames are the routes of a norm. On the first it has no dispatch: the products that read it take
// it in (fuseNorm).
var rmsNormRouteNames = []string{"folded", "rows"}

func addRMSNorm(c *call) []engine.ValueID {
	x := c.tensor("x")
	o := &rmsNorm{x: x, weight: c.tensor("weight"), y: c.out("", engine.F32), eps: float32(c.float("eps"))}
	o.weighted, o.squares = engine.None, engine.None
	o.vec = vec(c.Builder, x, -1)
	o.lanes = lanesFor(c.Builder, last(c.MaxDims(x))/o.vec)
	o.makeKernel(c.Builder)
	return c.adds(o, o.y)
}

type rmsNorm struct {
	x, weight, y engine.ValueID
	eps          float32
	kernel       *engine.Kernel
	lanes, vec   int
	folds        bool // a single row is left to the products that read it
	// weighted is a single row by the weights, and squares are sums of squares, of so many of its elements
	// each, where the operator that gives x gives these too (fusion rule norm); or None.
	weighted, squares engine.ValueID
	width, each       int
	// other is a norm as wide, whose rows the dispatch takes behind its own (fusion rule qk_norm); nil: none.
	other *rmsNorm
}

func (o *rmsNorm) makeKernel(b *engine.Builder) {
	o.kernel = kernel(b, "rms_norm",
		shaders.Constants{"Lanes": o.lanes, "Vec": o.vec, "Both": o.other != nil})
}

// norms are the operator's norms, in the order of their rows.
func (o *rmsNorm) norms() []*rmsNorm {
	if o.other == nil {
		return []*rmsNorm{o}
	}
	return []*rmsNorm{o, o.other}
}

func (o *rmsNorm) Spec() engine.Spec {
	s := engine.Spec{Kind: "rms_norm", Routes: rmsNormRouteNames, Attrs: map[string]any{"eps": o.eps}}
	use := engine.Use{Kernel: o.kernel}
	names := [][3]string{{"x", "weight", "y"}, {"other", "other_weight", "other_y"}}
	for i, n := range o.norms() {
		s.Inputs, s.Outputs = append(s.Inputs, n.x, n.weight), append(s.Outputs, n.y)
		x, weight, y := bind(names[i][0], n.x), bind(names[i][1], n.weight), bind(names[i][2], n.y)
		use.Bind = append(use.Bind, x, weight, y)
	}
	s.Slots = []engine.Slot{{Uses: []engine.Use{{}, use}}}
	return s
}

func (o *rmsNorm) Corners(r *engine.Ranges) []engine.Corner {
	var list []engine.ValueID
	for _, n := range o.norms() {
		list = append(list, n.x)
	}
	return r.Ends(list...)
}

func (o *rmsNorm) Plan(p *engine.Planner) error {
	width, n := p.Dim(o.x, -1), 0
	for _, norm := range o.norms() {
		x := p.Dims(norm.x)
		if w := p.Dims(norm.weight); len(w) != 1 || w[0] != last(x) || w[0] != width {
			return p.Errorf("weight is %v, want [%d] for x %v", w, last(x), x)
		}
		n += p.Numel(norm.x)
	}
	table := [...]route{
		{name: "folded", why: oneRow, only: true}, {name: "rows", why: manyRows, upTo: always},
	}
	if o.folds {
		table[0].upTo = 1
	}
	if routes(table[:]).choose(p, n/width) == 0 {
		p.Leave(o.y, p.Dims(o.x)...)
		return nil
	}
	norms := o.norms()
	for _, norm := range norms {
		p.SetDims(norm.y, p.Dims(norm.x)...)
	}
	l := p.Dispatch(0, p.Rows(o.lanes, width/o.vec, engine.RowsOf(n, width)))
	l.Params.U32("rows", n/width).U32("width", width).F32("eps", o.eps)
	if o.other != nil {
		l.Params.U32("first", p.Numel(o.x))
	}
	l.Bytes = 4 * int64(2*n+len(norms)*width)
	l.FLOPs = 4 * int64(n)
	return nil
}

func (o *rmsNorm) Reference(r *Ref) {
	for _, norm := range o.norms() {
		x, weight := r.Tensor(norm.x), r.Tensor(norm.weight)
		y := r.result(norm.y, x.Dims...)
		rows, width := x.rows()
		for i := range r.rows(norm.y, rows) {
			var squares float64
			for _, v := range x.row(i) {
				squares += v * v
			}
			scale := 1 / math.Sqrt(squares/float64(width)+float64(norm.eps))
			for j, v := range x.row(i) {
				y.row(i)[j] = v * scale * weight.Data[j]
			}
		}
		r.Set(norm.y, y)
	}
}

// Tolerance: squares are positive, so that nothing cancels out; WGSL allows inverseSqrt 2 ulp.
func (o *rmsNorm) Tolerance(r *Ref, _ engine.ValueID) Tolerance {
	n := last(r.Tensor(o.x).Dims)
	return Tolerance{Rel: summed(n) * rounding, Why: fmt.Sprintf("a mean of %d squares summed in f32", n)}
}
