package ops

import (
	"slices"

	"gpuscope/engine"
)

// Select adds select: y = x[..., index, ...] along a dim, which goes away. A negative index counts from the
// end of the live dim: -1 is always the last live row.
//
//	x  any dims, any 32-bit type
//	y  dims of x without dim axis
func Select(b *engine.Builder, name string, x engine.ValueID, axis, index int) engine.ValueID {
	return kindSelect.one(b, name, Args{"x": x, "dim": axis, "index": index})
}

var kindSelect = Kind{
	Name: "select", Doc: "y = x[..., index, ...] along a dim, which goes away.",
	Args:         []Arg{{"x", wordTensor, nil}, {"dim", intType, nil}, {"index", intType, nil}},
	Constructors: []string{"Select"}, add: addSelect,
}

func addSelect(c *call) []engine.ValueID {
	x := c.tensor("x")
	axis, ok := c.axis(x, c.int("dim"))
	if !ok {
		return nil
	}
	o := &selectRow{
		x: x, y: c.out("", c.DType(x)), axis: axis, index: c.int("index"),
		vec: innerVec(c.Builder, x, axis),
	}
	o.kernel = copyKernel(c.Builder, o.vec)
	return c.adds(o, o.y)
}

type selectRow struct {
	x, y        engine.ValueID
	axis, index int
	kernel      *engine.Kernel
	vec         int
}

func (o *selectRow) Spec() engine.Spec {
	return engine.Spec{
		Kind: "select", Inputs: []engine.ValueID{o.x}, Outputs: []engine.ValueID{o.y},
		Slots: []engine.Slot{{Uses: one(o.kernel, bind("src", o.x), bind("dst", o.y))}},
		Attrs: map[string]any{"dim": o.axis, "index": o.index},
	}
}

// Corners: the smallest has as many rows as the index needs.
func (o *selectRow) Corners(r *engine.Ranges) []engine.Corner {
	smallest := slices.Clone(r.Min(o.x))
	need := o.index + 1
	if o.index < 0 {
		need = -o.index
	}
	smallest[o.axis] = min(max(smallest[o.axis], need), r.Max(o.x)[o.axis])
	return []engine.Corner{{}, {{Value: o.x, Dims: smallest}}}
}

func (o *selectRow) Plan(p *engine.Planner) error {
	dims := p.Dims(o.x)
	row, dim := o.index, dims[o.axis]
	if row < 0 {
		row += dim
	}
	if row < 0 || row >= dim {
		return p.Errorf("index %d of dim %d of %v, want %d to %d", o.index, o.axis, dims, -dim, dim-1)
	}
	inner := product(dims[o.axis+1:])
	blockCopy{
		blocks: product(dims[:o.axis]), rows: 1, width: inner,
		srcStart: row * inner, srcBlock: dim * inner, dstBlock: inner,
	}.plan(p, 0, o.vec)
	var out [maxRank]int
	n := copy(out[:], dims[:o.axis])
	n += copy(out[n:], dims[o.axis+1:])
	p.SetDims(o.y, out[:n]...)
	return nil
}

func (o *selectRow) Reference(r *Ref) {
	x := r.Tensor(o.x)
	dim, row := x.Dims[o.axis], o.index
	if row < 0 {
		row += dim
	}
	y := zeros(slices.Delete(slices.Clone(x.Dims), o.axis, o.axis+1)...)
	inner := product(x.Dims[o.axis+1:])
	for i := range y.Data {
		y.Data[i] = x.Data[(i/inner*dim+row)*inner+i%inner]
	}
	r.Set(o.y, y)
}
