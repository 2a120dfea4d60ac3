package ops

import (
	"slices"

	"gpuscope/engine/graph"
)

// View adds view: the elements of x in other dims. One of the dims may be Rest, which is what the others
// leave of the live element count; any may be a SymInt.
//
//	x  any dims, any 32-bit type
//	y  dims, with the element count of x
//
// It is an alias of x, with no memory and no dispatch. Only where x or y is an input or output of the graph,
// or State, is it a copy. Upstream's view_copy, squeeze, unsqueeze, clone, alias_copy and dim_order copies
// are all this operator.
func View(b *graph.Builder, name string, x graph.ValueID, dims ...Int) graph.ValueID {
	return kindView.one(b, name, Args{"x": x, "dims": dims})
}

var kindView = Kind{
	Name: "view", Doc: "The elements of x in other dims, of which one may be -1, what the others leave.",
	Args:         []Arg{{"x", wordTensor, nil}, {"dims", symIntsType, nil}},
	Constructors: []string{"View"}, add: addView,
}

func addView(c *call) []graph.ValueID {
	x, dims := c.tensor("x"), c.syms("dims")
	o := &view{x: x, dims: dims, rest: -1}
	for k, d := range dims {
		switch {
		case d == Rest && o.rest >= 0:
			return c.fail("view with two dims to work out, %d and %d", o.rest, k)
		case d == Rest:
			o.rest = k
		case !d.isSym && d.fixed < 1:
			return c.fail("view with dim %d of %d, must be positive", k, d.fixed)
		}
	}
	if len(dims) > maxRank {
		return c.fail("view of rank %d, at most %d", len(dims), maxRank)
	}
	o.y = c.out("", c.DType(x))
	o.vec = innerVec(c.Builder, x, -1)
	o.kernel = copyKernel(c.Builder, o.vec)
	return c.adds(o, o.y)
}

// Rest is the dim of a view that is worked out from the others.
var Rest = Fixed(-1)

type view struct {
	moves
	x, y   graph.ValueID
	dims   []Int
	rest   int // the dim to work out, -1: none
	kernel *graph.Kernel
	vec    int
}

func (o *view) Spec() graph.Spec {
	dims := make([]any, len(o.dims))
	for k, d := range o.dims {
		dims[k] = d.attr()
	}
	return graph.Spec{
		Kind: "view", Inputs: args([]graph.ValueID{o.x}, o.dims...), Outputs: []graph.ValueID{o.y},
		Alias: true,
		Slots: []graph.Slot{{Uses: one(o.kernel, bind("src", o.x), bind("dst", o.y))}},
		Attrs: map[string]any{"dims": dims},
	}
}

func (o *view) Corners(r *graph.Ranges) []graph.Corner { return r.Ends(o.Spec().Inputs...) }

func (o *view) Plan(p *graph.Planner) error {
	n := p.Numel(o.x)
	var dims [maxRank]int
	others := 1
	for k, d := range o.dims {
		if k != o.rest {
			dims[k] = d.at(p)
			others *= dims[k]
		}
	}
	if o.rest >= 0 && others > 0 {
		dims[o.rest] = n / others
		others *= dims[o.rest]
	}
	if others != n {
		return p.Errorf("%d elements of %v do not make the dims asked for, which hold %d", n, p.Dims(o.x),
			others)
	}
	give := p.SetDims
	if p.Deferred(o.x) {
		give = p.Defer
	}
	give(o.y, dims[:len(o.dims)]...)
	if !p.Aliased() {
		blockCopy{blocks: 1, rows: 1, width: n}.plan(p, 0, o.vec)
	}
	return nil
}

func (o *view) Reference(r *Ref) {
	x := r.Tensor(o.x)
	dims := make([]int, len(o.dims))
	others := 1
	for k, d := range o.dims {
		if k != o.rest {
			dims[k] = d.in(r)
			others *= dims[k]
		}
	}
	if o.rest >= 0 {
		dims[o.rest] = len(x.Data) / others
	}
	r.Set(o.y, Tensor{dims, slices.Clone(x.Data)})
}
