package basic

import (
	"slices"

	"gpuscope/engine/graph"
	"gpuscope/ops/kind"
	"gpuscope/ops/reference"
)

// View adds view: the elements of x with other dims. One of the dims can be Rest. Its size is computed in
// each step, so that x and y have the same number of elements. Any dim can be a SymInt.
//
//	x  any dims, any 32-bit type
//	y  the given dims; the number of elements is that of x
//
// y is an alias of x, without memory or dispatch of its own. y is a copy only if x or y is an input or output
// of the graph, or State. ExecuTorch's view_copy, squeeze, unsqueeze, clone, alias_copy and dim_order copies
// all map to this operator.
func View(b *graph.Builder, name string, x graph.ValueID, dims ...kind.Int) graph.ValueID {
	return kindView.BuildOne(b, name, kind.Args{"x": x, "dims": dims})
}

var kindView = kind.Kind{
	Name: "view", Doc: "Arranges the elements of x in other dims. The size of one dim can be -1; it is then computed from " +
		"the number of elements.",
	Args:         []kind.Arg{kind.Required("x", kind.WordTensor), kind.Required("dims", kind.SymIntsType)},
	Constructors: []string{"View"}, Add: addView,
}

func addView(c *kind.Call) []graph.ValueID {
	x, dims := c.ArgTensor("x"), c.ArgSyms("dims")
	o := &ViewOp{X: x, dims: dims, rest: -1}
	for k, d := range dims {
		switch {
		case d == Rest && o.rest >= 0:
			return c.Fail("dims %d and %d of the view are both -1, but at most one dim can be -1",
				o.rest, k)
		case d == Rest:
			o.rest = k
		case !d.IsSym && d.Fixed < 1:
			return c.Fail("view: size of dim %d is %d, want at least 1", k, d.Fixed)
		}
	}
	if len(dims) > kind.MaxRank {
		return c.Fail("view has rank %d; the maximum is %d", len(dims), kind.MaxRank)
	}
	o.Y = c.Out("", c.DType(x))
	o.Vec = InnerVec(c.Builder, x, -1)
	o.NewKernel = CopyKernel(c.Builder, o.Vec)
	return c.AddOp(o, o.Y)
}

// Rest is a dim of a view whose size is computed from the other dims.
var Rest = kind.Fixed(-1)

// ViewOp is the operator view: Y has the elements of X, in the same order, with other dims.
type ViewOp struct {
	reference.Moves
	X, Y      graph.ValueID
	dims      []kind.Int
	rest      int // index of the dim that is Rest, or -1
	NewKernel *graph.Kernel
	Vec       int
}

func (o *ViewOp) Spec() graph.Spec {
	dims := make([]any, len(o.dims))
	for k, d := range o.dims {
		dims[k] = d.Attr()
	}
	return graph.Spec{
		Kind: "view", Inputs: kind.Operands([]graph.ValueID{o.X}, o.dims...), Outputs: []graph.ValueID{o.Y},
		Alias: true,
		Slots: []graph.Slot{{Uses: kind.Uses(o.NewKernel, graph.Bind("src", o.X), graph.Bind("dst", o.Y))}},
		Attrs: map[string]any{"dims": dims},
	}
}

func (o *ViewOp) Corners(r *graph.Ranges) []graph.Corner { return r.Ends(o.Spec().Inputs...) }

func (o *ViewOp) Plan(p *graph.Planner) error {
	n := p.Numel(o.X)
	var dims [kind.MaxRank]int
	others := 1
	for k, d := range o.dims {
		if k != o.rest {
			dims[k] = d.At(p)
			others *= dims[k]
		}
	}
	if o.rest >= 0 && others > 0 {
		dims[o.rest] = n / others
		others *= dims[o.rest]
	}
	if others != n {
		return p.Errorf("x has %d elements (dims %v), but the dims of the view hold %d elements",
			n, p.Dims(o.X), others)
	}
	give := p.SetDims
	if p.Deferred(o.X) {
		give = p.Defer
	}
	give(o.Y, dims[:len(o.dims)]...)
	if !p.Aliased() {
		BlockCopy{Blocks: 1, Rows: 1, Width: n}.Plan(p, 0, o.Vec)
	}
	return nil
}

func (o *ViewOp) Reference(r *reference.Ref) {
	x := r.Tensor(o.X)
	dims := make([]int, len(o.dims))
	others := 1
	for k, d := range o.dims {
		if k != o.rest {
			dims[k] = d.In(r)
			others *= dims[k]
		}
	}
	if o.rest >= 0 {
		dims[o.rest] = len(x.Data) / others
	}
	r.Set(o.Y, reference.Tensor{Dims: dims, Data: slices.Clone(x.Data)})
}
