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
	return kindPermute.one(b, name, Args{"x": x, "dims": order})
}

var kindPermute = Kind{
	Name: "permute", Doc: "The dims of x in another order: for each dim of y the dim of x that it is.",
	Args:         []Arg{{"x", wordTensor, nil}, {"dims", intsType, nil}},
	Constructors: []string{"Permute"}, add: addPermute,
}

func addPermute(c *call) []engine.ValueID {
	x, order := c.tensor("x"), c.ints("dims")
	o := &permute{x: x, order: make([]int, len(order)), vec: 1}
	seen := make([]bool, len(c.MaxDims(x)))
	for k, a := range order {
		axis, ok := c.axis(x, a)
		if !ok {
			return nil
		}
		o.order[k], seen[axis] = axis, true
	}
	if len(order) != len(seen) || len(order) == 0 || slices.Contains(seen, false) {
		return c.fail("%v is no order of the %d dims of %s", order, len(seen), c.Name(x))
	}
	if last(o.order) == len(order)-1 {
		o.vec = vec(c.Builder, x, -1)
	}
	o.y = c.out("", c.DType(x))
	o.kernel = c.kernel("permute",
		shaders.Constants{"Lanes": threadLanes, "Vec": o.vec, "Rank": len(order)})
	return c.adds(o, o.y)
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
