package program

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"gpuscope/engine/graph"
	"gpuscope/model/checkpoint/pte"
	"gpuscope/model/checkpoint/pte/vulkan"
	"gpuscope/ops/kind"
)

// This file implements the operators of ExecuTorch files that work on images.

// windowArgs adds the arguments that describe the window of a convolution or a pool, such as stride and
// padding.
func (c *call) windowArgs(args kind.Args, names ...string) kind.Args {
	for _, name := range names {
		args[name] = c.ints(name)
	}
	return args
}

// limitsOf adds to `args` the limits to which the operator clamps its result. It omits limits that are None
// or infinite.
func (c *call) limitsOf(args kind.Args, lowest, highest string) {
	for name, from := range map[string]string{"min": lowest, "max": highest} {
		if c.none(from) {
			continue
		}
		if v := c.float(from); !math.IsInf(v, 0) {
			args[name] = v
		}
	}
}

func convolution(c *call) { c.give(c.one("convolution", c.convolutionArgs())) }

func (c *call) convolutionArgs() kind.Args {
	args := c.windowArgs(kind.Args{
		"x": c.tensor("input"), "weight": c.tensor("weight"), "groups": c.int("groups"),
		"transposed": c.bool("transposed"),
	}, "stride", "padding", "dilation")
	if args["transposed"] == true {
		args["output_padding"] = c.ints("output_padding")
	}
	if bias := c.channels("bias", args["weight"].(graph.ValueID), args); bias != graph.None {
		args["bias"] = bias
	}
	return args
}

// channels returns a tensor argument with one element for each output channel of a convolution. It returns
// graph.None if the argument is None.
func (c *call) channels(name string, weight graph.ValueID, args kind.Args) graph.ValueID {
	if c.none(name) || c.Err() != nil {
		return graph.None
	}
	n := 0
	if dims := c.MaxDims(weight); len(dims) > 1 {
		if n = dims[0]; args["transposed"] == true {
			n = dims[1] * args["groups"].(int)
		}
	}
	if c.fileTensor(name).Constant < 0 {
		return c.tensor(name)
	}
	return c.bias(name, n) // the exporter may pad a constant
}

func convolutionWithClamp(c *call) {
	args := c.convolutionArgs()
	c.limitsOf(args, "output_min", "output_max")
	c.give(c.one("convolution", args))
}

// poolArgs returns the arguments that avgPool and maxPool have in common.
func (c *call) poolArgs(names ...string) kind.Args {
	args := kind.Args{"x": c.tensor("self"), "ceil_mode": c.bool("ceil_mode")}
	return c.windowArgs(args, append(names, "kernel_size", "stride", "padding")...)
}

func avgPool(c *call) {
	args := c.poolArgs()
	args["count_include_pad"] = c.bool("count_include_pad")
	if !c.none("divisor_override") {
		args["divisor_override"] = c.int("divisor_override")
	}
	c.give(c.one("avg_pool2d", args))
}

// maxPool computes indices only if something reads them.
func maxPool(c *call) {
	args := c.poolArgs("dilation")
	ids := c.outputs()
	args["indices"] = len(ids) > 1 && c.isRead(ids[1])
	c.give(c.all("max_pool2d", args)...)
}

// isRead reports whether a value is an output of the graph or an argument of an operator.
func (c *call) isRead(id int) bool {
	if slices.Contains(c.g.Outputs, id) {
		return true
	}
	for i := range c.g.Operators {
		op := &c.g.Operators[i]
		for _, arg := range op.Args[:len(op.Args)-1] {
			list, _ := c.g.Values[arg].(vulkan.ValueList)
			if arg == id || slices.Contains(list, id) {
				return true
			}
		}
	}
	return false
}

func upsample(kindName string) func(c *call) {
	return func(c *call) {
		args := kind.Args{"x": c.tensor("input")}
		if !c.none("output_size") {
			args["output_size"] = c.syms("output_size")
		} else {
			scales := c.floats("scale_factors")
			if len(scales) != 2 {
				c.refuse("scale_factors", "two numbers")
				return
			}
			args["scale_h"], args["scale_w"] = scales[0], scales[1]
		}
		if kindName == "upsample_bilinear2d" {
			args["align_corners"] = c.bool("align_corners")
		}
		c.give(c.one(kindName, args))
	}
}

func gridSampler(c *call) {
	c.give(c.one("grid_sampler_2d", kind.Args{
		"x": c.tensor("input"), "grid": c.tensor("grid"), "interpolation_mode": c.int("interpolation_mode"),
		"padding_mode": c.int("padding_mode"), "align_corners": c.bool("align_corners"),
	}))
}

func gridPriors(c *call) {
	c.give(c.one("grid_priors", kind.Args{
		"x": c.tensor("self"), "stride": c.int("stride"), "offset": c.float("offset"),
	}))
}

// int8Convolution returns the builder for a convolution of int8 elements. It convolves x minus its zero
// point with the weights. Both are integers, so sums of their products are exact in f32 below 2^24. Then it
// applies scales and bias.
func int8Convolution(depthwise, transposed bool) func(c *call) {
	return func(c *call) {
		x := c.with("sub", c.tensor("x"), c.float("input_zero_point"))
		args := c.windowArgs(kind.Args{"x": x, "groups": c.int("groups"), "transposed": transposed},
			"stride", "padding", "dilation")
		if transposed {
			args["output_padding"] = c.ints("output_padding")
		}
		out := c.outChannels()
		args["weight"] = c.int8Kernels(x, out, args["groups"].(int), depthwise, transposed)
		y := c.one("convolution", args)
		rank := len(c.MaxDims(x))
		part := out // number of scales in the file; all groups of a transposed convolution share them
		if transposed {
			part /= max(args["groups"].(int), 1)
		}
		scales := c.scaled("weight_scales", out, part, c.float("input_scale"))
		y = c.two("mul", y, c.perChannel(scales, rank))
		if bias := c.bias("bias", out); bias != graph.None {
			y = c.two("add", y, c.perChannel(bias, rank))
		}
		zero, lowest := c.float("output_zero_point"), -128.0
		switch c.text("activation") {
		case "none":
		case "relu": // the zero point represents 0
			lowest = max(lowest, zero)
		default:
			c.refuse("activation", `"none" or "relu"`)
		}
		c.give(c.quantized(y, c.inverse("output_scale"), zero, lowest, 127))
	}
}

// outChannels returns the number of channels of the operator's result.
func (c *call) outChannels() int {
	dims := c.outDims(0)
	if len(dims) < 3 || dims[1] < 1 {
		c.Errorf("the output has shape %v in the file, want at least three dims", dims)
		return 1
	}
	return dims[1]
}

// scaled returns a constant with n elements. It takes the first `part` elements of a constant of the file,
// repeats them until there are n, and multiplies each by `factor`.
func (c *call) scaled(name string, n, part int, factor float64) graph.ValueID {
	t := c.constantTensor(name, pte.Float32, 1)
	if c.Err() == nil && (part < 1 || t.Dims[0] < part) {
		c.refuse(name, fmt.Sprintf("at least %d elements", part))
	}
	load := c.bytesOf(t)
	if c.Err() != nil {
		return graph.None
	}
	constant := fmt.Sprintf("constant%d[%d of %d] * %v", t.Constant, part, n, float32(factor))
	return c.Constant(constant, graph.F32, []int{n}, func() ([]byte, error) {
		data, err := load()
		if err != nil {
			return nil, err
		}
		out := make([]byte, 0, 4*n)
		for i := range n {
			v := float64(math.Float32frombits(binary.LittleEndian.Uint32(data[i%part*4:])))
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(float32(v*factor)))
		}
		return out, nil
	})
}

// int8Kernels returns the weights of a convolution in the layout of the engine. The file stores one row,
// possibly padded, for each output channel. A row contains the group's input channels for each position of
// the kernel. The weights of a depthwise convolution are stored by position, then by channel.
func (c *call) int8Kernels(x graph.ValueID, out, groups int, depthwise, transposed bool) graph.ValueID {
	size, rank, dims := c.ints("kernel_size"), 2, c.MaxDims(x)
	if depthwise {
		rank = 3
	}
	t := c.constantTensor("weights", pte.Int8, rank)
	load := c.bytesOf(t)
	if c.Err() == nil && (len(size) != 2 || len(dims) != 4 || min(size[0], size[1], groups) < 1 ||
		max(size[0], size[1]) > 1<<14) {
		c.Errorf("argument kernel_size is %v, groups is %d, and x has shape %v; want two kernel sizes from 1 to "+
			"16384, at least one group, and an x with four dims", size, groups, dims)
	}
	if c.Err() != nil {
		return graph.None
	}
	in, positions := dims[1]/groups, size[0]*size[1]
	fitting := t.Dims[0] >= out && t.Dims[1] >= positions*in
	if depthwise {
		in = 1
		fitting = t.Dims[0] == size[0] && t.Dims[1] == size[1] && t.Dims[2] >= out
	}
	if !fitting || in < 1 || out%groups != 0 {
		c.refuse("weights", fmt.Sprintf("weights of %d channels with kernels of %v", out, size))
		return graph.None
	}
	inGroup := out / groups
	shape := []int{out, in, size[0], size[1]}
	if transposed {
		shape = []int{in * groups, inGroup, size[0], size[1]}
	}
	name := fmt.Sprintf("constant%d as f32 %v", t.Constant, shape)
	return c.Constant(name, graph.F32, shape, func() ([]byte, error) {
		data, err := load()
		if err != nil {
			return nil, err
		}
		kernels := make([]byte, out*in*positions)
		for k := range out {
			for i := range in {
				to := (k*in + i) * positions
				if transposed {
					to = ((k/inGroup*in+i)*inGroup + k%inGroup) * positions
				}
				for p := range positions {
					from := k*t.Dims[1] + p*in + i
					if depthwise {
						from = p*t.Dims[2] + k
					}
					kernels[to+p] = data[from]
				}
			}
		}
		return toDevice(pte.Int8, kernels)
	})
}
