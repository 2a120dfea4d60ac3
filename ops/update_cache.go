package ops

import (
	"gpuscope/engine/graph"
)

// UpdateCache adds update_cache: it writes the rows of value to a cache, from row position on. It has no
// output: the cache is State.
//
//	value     [1, S, H, D], any 32-bit type
//	cache     [1, C, H, D], State of the same type
//	position  0 to C - S
func UpdateCache(b *graph.Builder, name string, value, cache graph.ValueID, position Int) {
	kindUpdateCache.new(b, name, Args{"value": value, "cache": cache, "input_pos": position})
}

var kindUpdateCache = Kind{
	Name: "update_cache", Doc: "Writes the rows of value to a cache, from row input_pos on; no output.",
	Args: []Arg{
		{"value", wordTensor, nil}, {"cache", wordState, nil}, {"input_pos", symIntType, nil},
	},
	Constructors: []string{"UpdateCache"}, add: addUpdateCache,
}

func addUpdateCache(c *call) []graph.ValueID {
	value, cache := c.tensor("value"), c.tensor("cache")
	if c.DType(value) != c.DType(cache) {
		return c.fail("value %s is %s, cache %s is %s, want one type", c.Name(value), c.DType(value),
			c.Name(cache), c.DType(cache))
	}
	o := &updateCache{
		value: value, cache: cache, position: c.sym("input_pos"), vec: innerVec(c.Builder, value, 1),
	}
	o.kernel = copyKernel(c.Builder, o.vec)
	return c.adds(o)
}

type updateCache struct {
	moves
	value, cache graph.ValueID
	position     Int
	kernel       *graph.Kernel
	vec          int
}

func (o *updateCache) Spec() graph.Spec {
	return graph.Spec{
		Kind: "update_cache", Inputs: args([]graph.ValueID{o.value}, o.position),
		State: []graph.ValueID{o.cache},
		Slots: []graph.Slot{{Uses: one(o.kernel, bind("src", o.value), bind("dst", o.cache))}},
		Attrs: map[string]any{"input_pos": o.position.attr()},
	}
}

// Corners: the longest value is legal at the first position, the shortest anywhere.
func (o *updateCache) Corners(r *graph.Ranges) []graph.Corner {
	first, _ := o.position.span(r)
	list := r.Ends(o.value)
	for i := range list {
		list[i] = append(list[i], o.position.set(first)...)
	}
	return list
}

func (o *updateCache) Plan(p *graph.Planner) error {
	v, c, at := p.Dims(o.value), p.Dims(o.cache), o.position.at(p)
	if len(v) != 4 || len(c) != 4 || v[0] != 1 || c[0] != 1 || v[2] != c[2] || v[3] != c[3] {
		return p.Errorf("value is %v and the cache %v, want [1, S, H, D] and [1, C, H, D]", v, c)
	}
	if at < 0 || at+v[1] > c[1] {
		return p.Errorf("rows %d to %d of a cache of %d", at, at+v[1]-1, c[1])
	}
	o.rows(v, at).plan(p, 0, o.vec)
	return nil
}

func (o *updateCache) rows(v []int, at int) blockCopy {
	row := v[2] * v[3]
	return blockCopy{blocks: 1, rows: 1, width: v[1] * row, dstStart: at * row}
}

func (o *updateCache) Reference(r *Ref) {
	value, cache := r.Tensor(o.value), r.Tensor(o.cache)
	copy(cache.Data[o.position.in(r)*product(cache.Dims[2:]):], value.Data)
}
