package basic

import (
	"gpuscope/engine/graph"
	"gpuscope/ops/internal/shape"
	"gpuscope/ops/kind"
	"gpuscope/ops/reference"
)

// UpdateCache adds update_cache, which writes the rows of `value` to a cache. The first row is written at
// the index `position`. The operator has no output, because the cache is State.
//
//	value     [1, S, H, D], any 32-bit type
//	cache     [1, C, H, D], State of the same type
//	position  0 to C - S
func UpdateCache(b *graph.Builder, name string, value, cache graph.ValueID, position kind.Int) {
	kindUpdateCache.Build(b, name, kind.Args{"value": value, "cache": cache, "input_pos": position})
}

var kindUpdateCache = kind.Kind{
	Name: "update_cache", Doc: "Writes the rows of value to a cache, starting at row input_pos. It has no output.",
	Args: []kind.Arg{
		kind.Required("value", kind.WordTensor), kind.Required("cache", kind.WordState), kind.Required("input_pos", kind.SymIntType),
	},
	Constructors: []string{"UpdateCache"}, Add: addUpdateCache,
}

func addUpdateCache(c *kind.Call) []graph.ValueID {
	value, cache := c.ArgTensor("value"), c.ArgTensor("cache")
	if c.DType(value) != c.DType(cache) {
		return c.Fail("value %s has type %s and cache %s has type %s, want the same type",
			c.Name(value), c.DType(value),
			c.Name(cache), c.DType(cache))
	}
	o := &updateCache{
		value: value, cache: cache, position: c.ArgSym("input_pos"), Vec: InnerVec(c.Builder, value, 1),
	}
	o.NewKernel = CopyKernel(c.Builder, o.Vec)
	return c.AddOp(o)
}

type updateCache struct {
	reference.Moves
	value, cache graph.ValueID
	position     kind.Int
	NewKernel    *graph.Kernel
	Vec          int
}

func (o *updateCache) Spec() graph.Spec {
	return graph.Spec{
		Kind: "update_cache", Inputs: kind.Operands([]graph.ValueID{o.value}, o.position),
		State: []graph.ValueID{o.cache},
		Slots: []graph.Slot{{Uses: kind.Uses(o.NewKernel, graph.Bind("src", o.value), graph.Bind("dst",
			o.cache))}},
		Attrs: map[string]any{"input_pos": o.position.Attr()},
	}
}

// Corners returns a corner with the longest value and a corner with the shortest value. Both corners use the
// smallest position, because it is the only position at which the longest value is legal. The shortest value
// is legal at any position.
func (o *updateCache) Corners(r *graph.Ranges) []graph.Corner {
	first, _ := o.position.Span(r)
	list := r.Ends(o.value)
	for i := range list {
		list[i] = append(list[i], o.position.Set(first)...)
	}
	return list
}

func (o *updateCache) Plan(p *graph.Planner) error {
	v, c, at := p.Dims(o.value), p.Dims(o.cache), o.position.At(p)
	if len(v) != 4 || len(c) != 4 || v[0] != 1 || c[0] != 1 || v[2] != c[2] || v[3] != c[3] {
		return p.Errorf("value has dims %v and the cache has dims %v; want [1, S, H, D] and [1, C, H, D]",
			v, c)
	}
	if at < 0 || at+v[1] > c[1] {
		return p.Errorf("rows %d to %d are out of range, because the cache has %d rows", at, at+v[1]-1, c[1])
	}
	o.rows(v, at).Plan(p, 0, o.Vec)
	return nil
}

func (o *updateCache) rows(v []int, at int) BlockCopy {
	row := v[2] * v[3]
	return BlockCopy{Blocks: 1, Rows: 1, Width: v[1] * row, DstStart: at * row}
}

func (o *updateCache) Reference(r *reference.Ref) {
	value, cache := r.Tensor(o.value), r.Tensor(o.cache)
	copy(cache.Data[o.position.In(r)*shape.Product(cache.Dims[2:]):], value.Data)
}
