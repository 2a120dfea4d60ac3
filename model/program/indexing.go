package program

import (
	"math"
	"slices"

	"gpuscope/engine/graph"
	"gpuscope/model/checkpoint/pte/vulkan"
	"gpuscope/ops/basic"
	"gpuscope/ops/kind"
)

// This file implements the operators of ExecuTorch files that select elements, fill tensors, or work along a
// dim.

// number returns an argument that is a number or a bool. true becomes 1 and false becomes 0.
func (c *call) number(name string) float64 {
	if _, v := c.arg(name); v == true {
		return 1
	} else if v == false {
		return 0
	}
	return c.float(name)
}

func constantPad(c *call) {
	args := kind.Args{"x": c.tensor("self"), "pad": c.ints("pad")}
	if !c.none("value") {
		args["value"] = c.number("value")
	}
	c.give(c.one("constant_pad_nd", args))
}

func where(c *call) {
	a, b := c.promoted("self", "other")
	c.give(c.one("where", kind.Args{"condition": c.condition("condition"), "a": a, "b": b}))
}

// indices returns a tensor argument whose elements are indices into a dim of x. If the tensor is an input
// of the method, indices records that its elements must be less than the maximum size of the dim.
func (c *call) indices(name string, x graph.ValueID, axis int) graph.ValueID {
	return c.indexing(c.tensor(name), x, axis)
}

func (c *call) indexing(index, x graph.ValueID, axis int) graph.ValueID {
	if info, ok := c.Value(index); ok && info.Role == graph.Input && c.Err() == nil {
		c.m.limitIndices(index, c.MaxDims(x)[axis])
	}
	return index
}

func gatherAlong(c *call) {
	x := c.tensor("self")
	axis := c.axis(x, c.int("dim"))
	c.give(c.one("gather", kind.Args{"x": x, "dim": axis, "index": c.indices("index", x, axis)}))
}

func scatterAlong(c *call) {
	x := c.tensor("self")
	axis := c.axis(x, c.int("dim"))
	c.give(c.one("scatter", kind.Args{
		"x": x, "dim": axis, "index": c.indices("index", x, axis), "src": c.tensor("src"),
	}))
}

// index computes x[:, ..., index] for one tensor of indices. In the result, the dims of this tensor replace
// the indexed dim.
func index(c *call) {
	x := c.tensor("self")
	_, v := c.arg("indices")
	list, ok := v.(vulkan.ValueList)
	axis, found := 0, -1
	for k, id := range list {
		if _, is := c.g.Values[id].(*vulkan.Tensor); is {
			ok = ok && found < 0
			axis, found = k, id
		}
	}
	if !ok || found < 0 {
		c.refuse("indices", "one tensor of indices")
	}
	axis = c.axis(x, axis)
	if c.Err() != nil {
		return
	}
	at := c.indexing(c.tensorOf(found), x, axis)
	if c.Err() != nil {
		return
	}
	flat := at
	if len(c.MaxDims(at)) != 1 {
		flat = c.view(at, basic.Rest)
	}
	y := c.one("index_select", kind.Args{"x": x, "dim": axis, "index": flat})
	if len(c.MaxDims(at)) != 1 && c.Err() == nil {
		dims := slices.Concat(c.dimsOf(x)[:axis], c.dimsOf(at), c.dimsOf(x)[axis+1:])
		y = c.view(y, dims...)
	}
	c.give(y)
}

// asType converts x to the type in which the device stores the output.
func (c *call) asType(x graph.ValueID) graph.ValueID {
	want, ok := deviceType(c.outType())
	switch {
	case !ok || c.Err() != nil || c.DType(x) == want:
		return x
	case want == graph.F32:
		return c.one("to_f32", kind.Args{"x": x})
	}
	return c.one("to_i32", kind.Args{"x": x})
}

// logSoftmax computes y - log(sum(exp(y))) along a dim, where y is x minus its largest element.
func logSoftmax(c *call) {
	x := c.tensor("self")
	over := func(kindName string, x graph.ValueID) graph.ValueID {
		return c.one(kindName, kind.Args{"x": x, "dims": []int{c.axis(x, c.int("dim"))}, "keepdim": true})
	}
	y := c.two("sub", x, over("amax", x))
	sum := over("sum", c.one("exp", kind.Args{"x": y}))
	c.give(c.two("sub", y, c.one("log", kind.Args{"x": sum})))
}

func cumSum(c *call) {
	x := c.tensor("self")
	x = c.asType(x)
	c.give(c.alongLast(x, c.axis(x, c.int("dim")), func(x graph.ValueID) graph.ValueID {
		return c.one("cumsum", kind.Args{"x": x})
	}))
}

// topK finds the k largest elements along a dim, or the k smallest elements, which are the largest of -x.
func topK(c *call) {
	x, k, largest := c.tensor("self"), c.int("k"), c.bool("largest")
	axis := c.axis(x, c.int("dim"))
	if !largest {
		x = c.one("neg", kind.Args{"x": x})
	}
	var places graph.ValueID
	values := c.alongLast(x, axis, func(x graph.ValueID) graph.ValueID {
		out := c.all("topk", kind.Args{"x": x, "k": k})
		if len(out) < 2 {
			return graph.None
		}
		places = out[1]
		return out[0]
	})
	if c.Err() != nil {
		return
	}
	if last := len(c.MaxDims(x)) - 1; axis != last {
		places = c.one("permute", kind.Args{"x": places, "dims": swapped(axis, last)})
	}
	if !largest {
		values = c.one("neg", kind.Args{"x": values})
	}
	c.give(values, places)
}

// full creates a tensor whose elements are all equal. Its shape must not change from run to run.
func full(value func(c *call) float64) func(c *call) {
	return func(c *call) {
		dims := c.outDims(0)
		if name := "size"; slices.Contains(c.names, name) {
			if want := c.ints(name); c.Err() == nil && !slices.Equal(want, dims) {
				c.refuse(name, "the shape of the output, which must not change from run to run")
			}
		}
		c.give(c.filledAs(c.outType(), value(c), dims))
	}
}

// fullLike creates a tensor with the shape of x whose elements are all equal.
func fullLike(value func(c *call) float64) func(c *call) {
	return func(c *call) {
		x := c.tensor("self")
		if c.Err() != nil {
			return
		}
		if slices.Equal(c.MinDims(x), c.MaxDims(x)) {
			c.give(c.filledAs(c.outType(), value(c), c.MaxDims(x)))
			return
		}
		x = c.asType(x)
		// The condition is always 0 (false), so each element of the result is b, the value.
		c.give(c.one("where", kind.Args{
			"condition": c.scalar(0), "a": x, "b": c.filledAs(c.outType(), value(c), []int{1}),
		}))
	}
}

func fillValue(c *call) float64 { return c.number("fill_value") }

func always(v float64) func(c *call) float64 { return func(*call) float64 { return v } }

func scalarTensor(c *call) {
	c.give(c.filledAs(c.outType(), c.number("s"), c.outDims(0)))
}

// arange creates the numbers start, start + step, and so on, up to but excluding end.
func arange(c *call) {
	start, step := 0.0, 1.0
	if !c.none("start") {
		start = c.number("start")
	}
	if !c.none("step") {
		step = c.number("step")
	}
	dims := c.outDims(0)
	n := math.Ceil((c.number("end") - start) / step)
	if c.Err() == nil && (len(dims) != 1 || n != float64(dims[0])) {
		c.refuse("end", "an end that fits the shape of the output, which must not change from run to run")
	}
	c.give(c.computed(c.outType(), dims, start, step))
}
