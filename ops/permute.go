package ops

import (
	"slices"

	"gpuscope/engine"
	"gpuscope/shaders"
)

// Permute adds permute: the dims of x in another order.
//
//	x      any dims, any 32-bit type
//	order  for each dim of y the dim of x that it is
//	y      dims of x in that order
//
// An invocation gathers an element, or 4 where the last dim stays the last.
func Permute(b *engine.Builder, name string, x engine.ValueID, order ...int) engine.ValueID {
	if !ready(b, x) {
		return engine.None
	}
	o := &permute{x: x, order: make([]int, len(order)), vec: 1}
	seen := make([]bool, len(b.MaxDims(x)))
	for k, a := range order {
		axis, ok := axisOf(b, name, x, a)
		if !ok {
			return engine.None
		}
		o.order[k], seen[axis] = axis, true
	}
	if len(order) != len(seen) || len(order) == 0 || slices.Contains(seen, false) {
		b.Errorf("%s: %v is no order of the %d dims of %s", name, order, len(seen), b.Name(x))
		return engine.None
	}
	if last(o.order) == len(order)-1 {
		o.vec = vec(b, x, -1)
	}
	o.y = b.Tensor(name, b.DType(x))
	o.kernel = kernel(b, "permute", shaders.Constants{"Lanes": threadLanes, "Vec": o.vec, "Rank": len(order)})
	b.Add(name, o)
	return o.y
}

type permute struct {
	x, y   engine.ValueID
	order  []int
	kernel *engine.Kernel
	vec    int
}

func (o *permute) Spec() engine.Spec {
	return engine.Spec{
		Kind: "permute", Inputs: []engine.ValueID{o.x}, Outputs: []engine.ValueID{o.y},
		Slots: []engine.Slot{{Uses: one(o.kernel, bind("x", o.x), bind("y", o.y))}},
		Attrs: map[string]any{"dims": o.order},
	}
}

func (o *permute) Corners(r *engine.Ranges) []engine.Corner { return r.Ends(o.x) }

func (o *permute) Plan(p *engine.Planner) error {
	dims := p.Dims(o.x)
	var strides, size, stride [maxRank]int
	n := 1
	for k := len(dims) - 1; k >= 0; k-- {
		strides[k] = n
		if n *= dims[k]; k == len(dims)-1 {
			n /= o.vec
		}
	}
	for k, a := range o.order {
		size[k], stride[k] = dims[a], strides[a]
	}
	rank := len(o.order)
	p.SetDims(o.y, size[:rank]...)
	size[rank-1] /= o.vec
	l := p.Dispatch(0, p.Threads(n, threadLanes))
	l.Params.U32("n", n)
	putDims(&l.Params, &sizeNames, size[:rank])
	putDims(&l.Params, &strideNames, stride[:rank])
	l.Bytes = 8 * int64(n) * int64(o.vec)
	return nil
}

func (o *permute) Reference(r *Ref) {
	x := r.Tensor(o.x)
	dims := make([]int, len(o.order))
	for k, a := range o.order {
		dims[k] = x.Dims[a]
	}
	y := zeros(dims...)
	at := make([]int, len(dims)) // coordinates in x
	for i := range y.Data {
		rest := i
		for k := len(dims) - 1; k >= 0; k-- {
			at[o.order[k]] = rest % dims[k]
			rest /= dims[k]
		}
		from := 0
		for k, c := range at {
			from = from*x.Dims[k] + c
		}
		y.Data[i] = x.Data[from]
	}
	r.Set(o.y, y)
}

// The kernel's fields of which there is one for each dim.
var sizeNames, strideNames = perDim("size"), perDim("stride")
