package ops

import (
	"slices"

	"gpuscope/engine"
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
func View(b *engine.Builder, name string, x engine.ValueID, dims ...Int) engine.ValueID {
	if !ready(b, x) {
		return engine.None
	}
	o := &view{x: x, dims: slices.Clone(dims), rest: -1}
	for k, d := range dims {
		switch {
		case d == Rest && o.rest >= 0:
			b.Errorf("%s: view with two dims to work out, %d and %d", name, o.rest, k)
			return engine.None
		case d == Rest:
			o.rest = k
		case !d.isSym && d.fixed < 1:
			b.Errorf("%s: view with dim %d of %d, must be positive", name, k, d.fixed)
			return engine.None
		}
	}
	if len(dims) > maxRank {
		b.Errorf("%s: view of rank %d, at most %d", name, len(dims), maxRank)
		return engine.None
	}
	o.y = b.Tensor(name, b.DType(x))
	o.vec = innerVec(b, x, -1)
	o.kernel = copyKernel(b, o.vec)
	b.Add(name, o)
	return o.y
}

// Rest is the dim of a view that is worked out from the others.
var Rest = Fixed(-1)

type view struct {
	x, y   engine.ValueID
	dims   []Int
	rest   int // the dim to work out, -1: none
	kernel *engine.Kernel
	vec    int
}

func (o *view) Spec() engine.Spec {
	dims := make([]any, len(o.dims))
	for k, d := range o.dims {
		dims[k] = d.attr()
	}
	return engine.Spec{
		Kind: "view", Inputs: args([]engine.ValueID{o.x}, o.dims...), Outputs: []engine.ValueID{o.y},
		Alias: true,
		Slots: []engine.Slot{{Uses: one(o.kernel, bind("src", o.x), bind("dst", o.y))}},
		Attrs: map[string]any{"dims": dims},
	}
}

func (o *view) Corners(r *engine.Ranges) []engine.Corner { return r.Ends(o.Spec().Inputs...) }

func (o *view) Plan(p *engine.Planner) error {
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
	p.SetDims(o.y, dims[:len(o.dims)]...)
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
