package program

import (
	"fmt"
	"math"
	"slices"

	"gpuscope/engine/graph"
	"gpuscope/model/checkpoint/pte"
	"gpuscope/ops/basic"
	"gpuscope/ops/kind"
	"gpuscope/ops/weight"
)

// This file implements the operators of ExecuTorch files that become several operators of the engine.

// with adds an operator with two operands: the tensor x and the number v.
func (c *call) with(kindName string, x graph.ValueID, v float64) graph.ValueID {
	if c.DType(x) == graph.I32 {
		if v == math.Trunc(v) && math.Abs(v) <= math.MaxInt32 {
			return c.two(kindName, x, c.filledAs(pte.Int32, v, []int{1}))
		}
		x = c.one("to_f32", kind.Args{"x": x})
	}
	return c.two(kindName, x, c.scalar(v))
}

// two adds an operator with two operands, a and b.
func (c *call) two(kindName string, a, b graph.ValueID) graph.ValueID {
	return c.one(kindName, kind.Args{"a": a, "b": b})
}

// limited returns x with its elements limited to the range from lo to hi.
func (c *call) limited(x graph.ValueID, lo, hi float64) graph.ValueID {
	return c.with("minimum", c.with("maximum", x, lo), hi)
}

// leakyReLU computes x where x is positive, and slope * x elsewhere.
func leakyReLU(c *call) {
	x, slope := c.tensor("self"), c.float("negative_slope")
	if slope < 0 || slope > 1 {
		c.refuse("negative_slope", "a number from 0 to 1")
	}
	c.give(c.two("maximum", x, c.with("mul", x, slope)))
}

// hardSigmoid returns x + 3, limited to the range from 0 to 6, and divided by 6.
func (c *call) hardSigmoid(x graph.ValueID) graph.ValueID {
	return c.with("div", c.limited(c.with("add", x, 3), 0, 6), 6)
}

// condition returns a tensor argument as bools. If the tensor is of another type, its elements are true where
// they are not 0.
func (c *call) condition(name string) graph.ValueID {
	x := c.tensor(name)
	if t := c.fileTensor(name); t.Type != pte.Bool && c.Err() == nil {
		if c.DType(x) == graph.I32 {
			x = c.one("to_f32", kind.Args{"x": x})
		}
		x = c.with("ne", x, 0)
	}
	return x
}

// logical returns the builder for an operator on two tensors of bools. On the device, a bool is 0 or 1.
func logical(kindName string) func(c *call) {
	return func(c *call) { c.give(c.two(kindName, c.condition("self"), c.condition("other"))) }
}

// bitwise returns the builder for a bitwise operator. It supports only bools, for which the operator equals
// a logical operator. `of` is the builder for this logical operator.
func bitwise(of func(c *call)) func(c *call) {
	return func(c *call) {
		if t := c.fileTensor("self"); t.Type != pte.Bool {
			c.refuse("self", "a tensor of bool")
		}
		of(c)
	}
}

func logicalNot(c *call) { c.give(c.two("sub", c.scalar(1), c.condition("self"))) }

// fixedDims returns the dims of x. It records an error if they can change from run to run, or if x does not
// have the given rank. A rank of 0 means any rank.
func (c *call) fixedDims(x graph.ValueID, rank int) []int {
	dims := slices.Clone(c.MaxDims(x))
	if c.Err() == nil && (!slices.Equal(c.MinDims(x), dims) || rank > 0 && len(dims) != rank) {
		c.Errorf("%s has shape %v, want a shape of rank %d that is the same in every run", c.Name(x),
			dims, rank)
	}
	if c.Err() != nil {
		return make([]int, max(rank, 1))
	}
	return dims
}

// shaped returns a view of x with the given fixed dims.
func (c *call) shaped(x graph.ValueID, dims ...int) graph.ValueID {
	list := make([]kind.Int, len(dims))
	for k, d := range dims {
		list[k] = kind.Fixed(d)
	}
	return c.view(x, list...)
}

// times returns the product of a size and a number.
func (c *call) times(size kind.Int, n int) kind.Int {
	if c.Err() != nil || !size.IsSym {
		return kind.Fixed(size.Fixed * n)
	}
	v := c.one("sym_mul", kind.Args{"a": size, "b": kind.Fixed(n)})
	if c.Err() != nil {
		return kind.Int{}
	}
	return kind.Sym(v)
}

// repeat repeats x the given number of times along each of its dims, and along new dims before them.
func repeat(c *call) {
	x, times := c.tensor("self"), c.ints("repeats")
	dims := c.dimsOf(x)
	if c.Err() != nil {
		return
	}
	var split, whole []kind.Int // split has a dim of size 1 before each dim that is repeated
	var sizes []int             // argument of expand
	ahead, repeats := len(times)-len(dims), false
	for k, n := range times {
		d := kind.Fixed(1)
		if k >= ahead {
			d = dims[k-ahead]
		}
		if n < 1 || ahead < 0 {
			c.refuse("repeats", "a positive number for each dim")
			return
		}
		if n > 1 {
			split, sizes, repeats = append(split, kind.Fixed(1)), append(sizes, n), true
		}
		split, sizes, whole = append(split, d), append(sizes, -1), append(whole, c.times(d, n))
	}
	y := c.view(x, split...)
	if repeats {
		y = c.one("expand", kind.Args{"x": y, "size": sizes})
	}
	c.give(c.view(c.copyOf(y), whole...))
}

// pixelShuffled turns each group of r*r channels of images [..., C, H, W] into one channel. This channel is r
// times as high and r times as wide.
func (c *call) pixelShuffled(x graph.ValueID, r int) graph.ValueID {
	d := c.dimsOf(x)
	if c.Err() != nil {
		return graph.None
	}
	most, ahead := c.MaxDims(x), len(d)-3
	if ahead < 0 || r < 1 || r > 1<<14 || d[ahead].IsSym || most[ahead]%(r*r) != 0 {
		c.refuse("upscale_factor", fmt.Sprintf("a number whose square divides the channels of %v", most))
		return graph.None
	}
	size, channels := kind.Fixed(r), kind.Fixed(most[ahead]/r/r)
	h, w := d[ahead+1], d[ahead+2]
	y := c.view(x, append(slices.Clone(d[:ahead]), channels, size, size, h, w)...)
	var order []int
	for k := range ahead + 1 {
		order = append(order, k)
	}
	order = append(order, ahead+3, ahead+1, ahead+4, ahead+2)
	y = c.one("permute", kind.Args{"x": y, "dims": order})
	return c.view(y, append(slices.Clone(d[:ahead]), channels, c.times(h, r), c.times(w, r))...)
}

func pixelShuffle(c *call) { c.give(c.pixelShuffled(c.tensor("self"), c.int("upscale_factor"))) }

// perChannel returns a view of shape [C, 1, ...] of a vector with an element for each channel. Operators
// broadcast this view over all dims after the channels of a tensor with the given rank.
func (c *call) perChannel(v graph.ValueID, rank int) graph.ValueID {
	dims := c.fixedDims(v, 1)
	for range rank - 2 {
		dims = append(dims, 1)
	}
	return c.shaped(v, dims...)
}

// batchNorm normalizes each channel with the mean and the variance stored in the file.
func batchNorm(c *call) {
	x := c.tensor("input")
	rank := len(c.MaxDims(x))
	factor := c.one("rsqrt", kind.Args{"x": c.with("add", c.tensor("running_var"), c.float("eps"))})
	if !c.none("weight") {
		factor = c.two("mul", factor, c.tensor("weight"))
	}
	y := c.two("sub", x, c.perChannel(c.tensor("running_mean"), rank))
	y = c.two("mul", y, c.perChannel(factor, rank))
	if !c.none("bias") {
		y = c.two("add", y, c.perChannel(c.tensor("bias"), rank))
	}
	c.give(y)
}

// groupNorm normalizes groups of channels. Its further outputs are the mean and the inverse standard
// deviation of each group.
func groupNorm(c *call) {
	x, groups := c.tensor("input"), c.int("group")
	dims := c.dimsOf(x)
	if c.Err() == nil && (len(dims) < 2 || groups < 1 || dims[1].IsSym || c.MaxDims(x)[1]%groups != 0) {
		c.refuse("group", "a divisor of the number of channels")
	}
	if c.Err() != nil {
		return
	}
	flat := c.view(x, dims[0], kind.Fixed(groups), basic.Rest)
	mean := func(x graph.ValueID) graph.ValueID {
		return c.one("mean", kind.Args{"x": x, "dims": []int{2}, "keepdim": true})
	}
	middle := mean(flat)
	off := c.two("sub", flat, middle)
	factor := c.one("rsqrt", kind.Args{"x": c.with("add", mean(c.two("mul", off, off)), c.float("eps"))})
	y := c.view(c.two("mul", off, factor), dims...)
	if !c.none("weight") {
		y = c.two("mul", y, c.perChannel(c.tensor("weight"), len(dims)))
	}
	if !c.none("bias") {
		y = c.two("add", y, c.perChannel(c.tensor("bias"), len(dims)))
	}
	each := func(v graph.ValueID) graph.ValueID { return c.view(v, dims[0], kind.Fixed(groups)) }
	c.give(y, each(middle), each(factor))
}

// quantized rounds x * factor, adds the zero point, and limits the result to the range from lo to hi.
// `factor` is 1 / scale.
func (c *call) quantized(x graph.ValueID, factor, zero, lo, hi float64) graph.ValueID {
	q := c.one("round", kind.Args{"x": c.with("mul", x, factor)})
	return c.limited(c.with("add", q, zero), lo, hi)
}

// dequantized converts quantized integers back to the numbers that they represent.
func (c *call) dequantized(q graph.ValueID, scale, zero float64) graph.ValueID {
	return c.with("mul", c.with("sub", q, zero), scale)
}

// inverse returns 1 / scale. `name` is the name of the argument that holds the scale.
func (c *call) inverse(name string) float64 {
	scale := c.float(name)
	if !(scale > 0) {
		c.refuse(name, "a positive number")
		return 1
	}
	return 1 / scale
}

func quantizePerTensor(c *call) {
	c.give(c.quantized(c.tensor("input"), c.inverse("scale"), c.float("zero_point"), c.float("quant_min"),
		c.float("quant_max")))
}

func dequantizePerTensor(c *call) {
	c.give(c.dequantized(c.tensor("input"), c.float("scale"), c.float("zero_point")))
}

// int8Output quantizes y to int8 and makes it the output of the operator.
func (c *call) int8Output(y graph.ValueID) {
	c.give(c.quantized(y, c.inverse("output_scale"), c.float("output_zero_point"), -128, 127))
}

func int8ReLU(c *call) {
	x := c.dequantized(c.tensor("input"), c.float("input_scale"), c.float("input_zero_point"))
	c.int8Output(c.one("relu", kind.Args{"x": x}))
}

func int8Add(c *call) {
	a := c.dequantized(c.tensor("input_a"), c.float("input_a_scale"), c.float("input_a_zero_point"))
	b := c.dequantized(c.tensor("input_b"), c.float("input_b_scale"), c.float("input_b_zero_point"))
	c.int8Output(c.one("add", kind.Args{"a": a, "b": b, "alpha": c.float("alpha")}))
}

func int8PixelShuffle(c *call) {
	x := c.dequantized(c.tensor("input"), c.float("input_scale"), c.float("input_zero_point"))
	y := c.pixelShuffled(x, c.int("upscale_factor"))
	c.give(c.quantized(y, c.float("output_inv_scale"), c.float("output_zero_point"), -128, 127))
}

// int8Product multiplies int8 activations by a matrix of int8 weights. It multiplies each sum by the scale of
// the activations and the scale of the weight row, and adds the bias.
func (c *call) int8Product() graph.ValueID {
	x := c.with("sub", c.tensor("x"), c.float("input_zero_point"))
	t, rows, cols := c.constantTensor("weights", pte.Int8, 2), c.outWidth(), c.lastDim(x)
	if c.Err() == nil && (t.Dims[0] < rows || t.Dims[1] != cols) {
		c.refuse("weights", fmt.Sprintf("a tensor with at least %d rows and exactly %d columns", rows, cols))
	}
	load := c.bytesOf(t)
	m := weight.Matrix{
		Name: c.constantName(t.Constant) + " as f32", Rows: rows, Cols: cols, Format: weight.F32,
		Data: func() ([][]byte, error) {
			data, err := load()
			if err != nil {
				return nil, err
			}
			data, err = toDevice(pte.Int8, data[:rows*cols])
			return [][]byte{data}, err
		},
	}
	y := c.with("mul", c.linear(x, m, ""), c.float("input_scale"))
	y = c.two("mul", y, c.bias("weight_scales", rows))
	if bias := c.bias("bias", rows); bias != graph.None {
		y = c.two("add", y, bias)
	}
	return y
}

func linearInt8(c *call) { c.give(c.int8Product()) }

// linearInt8Output computes the same product as linearInt8, applies an optional activation, and quantizes the
// result to int8.
func linearInt8Output(c *call) {
	y := c.int8Product()
	switch c.text("activation") {
	case "none":
	case "relu":
		y = c.one("relu", kind.Args{"x": y})
	default:
		c.refuse("activation", `"none" or "relu"`)
	}
	c.int8Output(y)
}
