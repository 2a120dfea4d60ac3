package program

import (
	"math"

	"gpuscope/engine/graph"
	"gpuscope/model/checkpoint/pte"
	"gpuscope/model/checkpoint/pte/vulkan"
	"gpuscope/ops/basic"
	"gpuscope/ops/kind"
)

// operators maps the name of each supported operator of ExecuTorch files to its builder: a function that adds
// the corresponding operators of the engine to the graph.
var operators map[string]func(c *call)

func init() { // not in the declaration: the functions use this table through builder
	operators = map[string]func(c *call){
		// Integer arithmetic on sizes and positions.
		"sym_size.int":                   symSize,
		"et_vk.select_as_symint.default": selectAsSymInt,
		"add":                            symArithmetic("sym_add", func(a, b int64) int64 { return a + b }),
		"sub":                            symArithmetic("sym_sub", func(a, b int64) int64 { return a - b }),
		"mul":                            symArithmetic("sym_mul", func(a, b int64) int64 { return a * b }),
		"floordiv":                       symArithmetic("sym_floordiv", floorDiv),
		"neg":                            symNeg,

		// Operators of language models.
		"et_vk.prepack.default":                      prepack,
		"et_vk.linear_q4gsw.default":                 linearQ4GSW,
		"et_vk.linear_dq8ca_q4gsw.default":           linearQuantized,
		"torchao.choose_qparams_affine.default":      chooseQParams,
		"et_vk.sdpa.default":                         sdpa,
		"et_vk.linear_qcs4w.default":                 linearQCS4W,
		"et_vk.embedding_q4gsw.default":              embeddingQ4GSW,
		"et_vk.rms_norm.default":                     rmsNorm,
		"et_vk.apply_rotary_emb.default":             rotary,
		"et_vk.apply_rotary_emb_hf.default":          rotaryHF,
		"et_vk.apply_rotary_emb_interleaved.default": rotaryInterleaved,
		"sdpa_with_kv_cache.default":                 sdpaWithCache,
		"update_cache.default":                       updateCache,

		// Elementwise operators.
		"aten.abs.default":       ofOne("abs"),
		"aten.neg.default":       ofOne("neg"),
		"aten.exp.default":       ofOne("exp"),
		"aten.sqrt.default":      ofOne("sqrt"),
		"aten.rsqrt.default":     ofOne("rsqrt"),
		"aten.tanh.default":      ofOne("tanh"),
		"aten.sin.default":       ofOne("sin"),
		"aten.cos.default":       ofOne("cos"),
		"aten.clamp.default":     clamp("min", "max"),
		"aten.hardtanh.default":  clamp("min_val", "max_val"),
		"aten.relu.default":      ofOne("relu"),
		"aten.sigmoid.default":   ofOne("sigmoid"),
		"aten.gelu.default":      gelu,
		"aten.add.Tensor":        scaled("add"),
		"aten.sub.Tensor":        scaled("sub"),
		"aten.mul.Tensor":        ofTwo("mul", "other"),
		"aten.div.Tensor":        ofTwo("div", "other"),
		"aten.minimum.default":   ofTwo("minimum", "other"),
		"aten.maximum.default":   ofTwo("maximum", "other"),
		"aten.pow.Tensor_Tensor": ofTwo("pow", "exponent"),
		"aten.pow.Tensor_Scalar": powScalar,
		"aten.eq.Tensor":         ofTwo("eq", "other"),
		"aten.ne.Tensor":         ofTwo("ne", "other"),
		"aten.lt.Tensor":         ofTwo("lt", "other"),
		"aten.le.Tensor":         ofTwo("le", "other"),
		"aten.gt.Tensor":         ofTwo("gt", "other"),
		"aten.ge.Tensor":         ofTwo("ge", "other"),
		"aten.div.Tensor_mode":   divMode,
		"aten.floor_divide.default": func(c *call) {
			c.give(c.one("floor", kind.Args{"x": c.one("div", kind.Args{"a": c.tensor("self"), "b": c.tensor("other")})}))
		},

		"aten.round.default":       ofOne("round"),
		"aten.leaky_relu.default":  leakyReLU,
		"aten.hardsigmoid.default": func(c *call) { c.give(c.hardSigmoid(c.tensor("self"))) },
		"aten.hardswish.default": func(c *call) {
			x := c.tensor("self")
			c.give(c.two("mul", x, c.hardSigmoid(x)))
		},
		"aten.logical_and.default": logical("minimum"),
		"aten.logical_or.default":  logical("maximum"),
		"aten.logical_not.default": logicalNot,
		"aten.bitwise_and.Tensor":  bitwise(logical("minimum")),
		"aten.bitwise_or.Tensor":   bitwise(logical("maximum")),
		"aten.bitwise_not.default": bitwise(logicalNot),

		// Comparisons with a number.
		"aten.eq.Scalar": withNumber("eq"),
		"aten.ne.Scalar": withNumber("ne"),
		"aten.lt.Scalar": withNumber("lt"),
		"aten.le.Scalar": withNumber("le"),
		"aten.gt.Scalar": withNumber("gt"),
		"aten.ge.Scalar": withNumber("ge"),

		// Quantized int8 operators.
		"quantized_decomposed.quantize_per_tensor.default":   quantizePerTensor,
		"quantized_decomposed.dequantize_per_tensor.default": dequantizePerTensor,
		"et_vk.q8ta_relu.default":                            int8ReLU,
		"et_vk.q8ta_add.default":                             int8Add,
		"et_vk.q8ta_pixel_shuffle.default":                   int8PixelShuffle,
		"et_vk.linear_q8ta_q8csw.default":                    linearInt8,
		"et_vk.q8ta_linear.default":                          linearInt8Output,
		"et_vk.q8ta_linear_gemv.default":                     linearInt8Output,

		// Operators on images.
		"aten.convolution.default":             convolution,
		"et_vk.conv_with_clamp.default":        convolutionWithClamp,
		"aten.avg_pool2d.default":              avgPool,
		"aten.max_pool2d.default":              maxPool,
		"aten.max_pool2d_with_indices.default": maxPool,
		"aten.upsample_nearest2d.vec":          upsample("upsample_nearest2d"),
		"aten.upsample_bilinear2d.vec":         upsample("upsample_bilinear2d"),
		"aten.grid_sampler_2d.default":         gridSampler,
		"et_vk.grid_priors.default":            gridPriors,
		"et_vk.q8ta_conv2d.default":            int8Convolution(false, false),
		"et_vk.q8ta_conv2d_pw.default":         int8Convolution(false, false),
		"et_vk.q8ta_conv2d_dw.default":         int8Convolution(true, false),
		"et_vk.q8ta_conv2d_transposed.default": int8Convolution(false, true),

		// Matrix products, norms and operators along a dim.
		"aten.linear.default":                               linearF32,
		"aten.embedding.default":                            embeddingF32,
		"aten.index.Tensor":                                 index,
		"aten.where.self":                                   where,
		"aten.gather.default":                               gatherAlong,
		"aten.scatter.src":                                  scatterAlong,
		"aten._log_softmax.default":                         logSoftmax,
		"aten.cumsum.default":                               cumSum,
		"aten.topk.default":                                 topK,
		"aten.index_select.default":                         indexSelect,
		"aten.mm.default":                                   matrixProduct,
		"aten.bmm.default":                                  matrixProduct,
		"aten.addmm.default":                                addmm,
		"aten.native_layer_norm.default":                    layerNorm,
		"aten.native_group_norm.default":                    groupNorm,
		"aten._native_batch_norm_legit_no_training.default": batchNorm,
		"aten._softmax.default":                             softmax,
		"aten.amax.default":                                 reduce("amax"),
		"aten.amin.default":                                 reduce("amin"),
		"aten.sum.dim_IntList":                              reduce("sum"),
		"aten.mean.dim":                                     reduce("mean"),
		"aten.argmax.default":                               argmax(false),
		"aten.argmin.default":                               argmax(true),

		// Operators that change the shape or copy.
		"aten.view_copy.default":                   viewCopy,
		"aten.clone.default":                       same,
		"aten.alias_copy.default":                  same,
		"dim_order_ops._clone_dim_order.default":   same,
		"aten.squeeze_copy.dims":                   squeeze,
		"aten.unsqueeze_copy.default":              unsqueeze,
		"aten.select_copy.int":                     selectCopy,
		"aten.slice_copy.Tensor":                   sliceCopy,
		"aten.split_with_sizes_copy.default":       split,
		"aten.permute_copy.default":                permute,
		"aten.t_copy.default":                      transpose,
		"aten.expand_copy.default":                 expand,
		"aten.repeat.default":                      repeat,
		"aten.pixel_shuffle.default":               pixelShuffle,
		"aten.permute.default":                     permute,
		"aten.constant_pad_nd.default":             constantPad,
		"aten.full.default":                        full(fillValue),
		"aten.zeros.default":                       full(always(0)),
		"aten.ones.default":                        full(always(1)),
		"aten.full_like.default":                   fullLike(fillValue),
		"aten.zeros_like.default":                  fullLike(always(0)),
		"aten.ones_like.default":                   fullLike(always(1)),
		"aten.scalar_tensor.default":               scalarTensor,
		"aten.arange.start_step":                   arange,
		"aten.flip.default":                        flip,
		"aten.cat.default":                         cat,
		"dim_order_ops._to_dim_order_copy.default": convert,
		"aten._to_copy.default":                    convert,
	}
}

// ofOne returns the builder for an elementwise operator on one tensor. neg, abs, relu and round of integers
// yield integers. All other operators convert integers to floats, as PyTorch does.
func ofOne(kindName string) func(c *call) {
	return func(c *call) {
		x := c.tensor("self")
		if c.DType(x) == graph.I32 {
			switch kindName {
			case "neg":
				c.give(c.with("mul", x, -1))
				return
			case "abs":
				c.give(c.two("maximum", x, c.with("mul", x, -1)))
				return
			case "relu":
				c.give(c.with("maximum", x, 0))
				return
			case "round":
				c.give(c.copyOf(x))
				return
			}
			x = c.one("to_f32", kind.Args{"x": x})
		}
		c.give(c.one(kindName, kind.Args{"x": x}))
	}
}

func gelu(c *call) {
	mode := c.text("approximate")
	if mode != "none" && mode != "tanh" {
		c.refuse("approximate", `"none" or "tanh"`)
	}
	c.give(c.one("gelu", kind.Args{"x": c.tensor("self"), "tanh": mode == "tanh"}))
}

func ofTwo(kindName, second string) func(c *call) {
	return func(c *call) {
		a, b := c.promoted("self", second)
		if kindName == "div" { // integers are divided as floats
			a, b = c.asFloat(a), c.asFloat(b)
		}
		c.give(c.two(kindName, a, b))
	}
}

func (c *call) asFloat(x graph.ValueID) graph.ValueID {
	if c.DType(x) == graph.I32 {
		return c.one("to_f32", kind.Args{"x": x})
	}
	return x
}

// promoted returns two arguments in the type to which PyTorch promotes them: floats if one of them has
// floats, otherwise integers. Bools and 8-bit integers are f32 on the device. They are converted only if the
// other argument is i32 on the device.
func (c *call) promoted(first, second string) (a, b graph.ValueID) {
	a, b = c.tensor(first), c.tensor(second)
	if c.Err() != nil || c.DType(a) == c.DType(b) {
		return a, b
	}
	both := [2]graph.ValueID{a, b}
	for k, name := range []string{first, second} {
		if t := c.fileTensor(name).Type; t == pte.Bool || narrow(t) {
			both[k] = c.one("to_i32", kind.Args{"x": both[k]})
			return both[0], both[1]
		}
	}
	return c.asFloat(a), c.asFloat(b)
}

// scaled returns the builder for add or sub, which first multiply the second operand by alpha.
func scaled(kindName string) func(c *call) {
	return func(c *call) {
		a, b := c.promoted("self", "other")
		c.give(c.one(kindName, kind.Args{"a": a, "b": b, "alpha": c.float("alpha")}))
	}
}

// clamp returns the builder for an operator that limits its elements to a range. `lowest` and `highest` are
// the names of the arguments with the limits. Each of them may be None.
func clamp(lowest, highest string) func(c *call) {
	return func(c *call) {
		y := c.copyOf(c.tensor("self"))
		if !c.none(lowest) {
			y = c.with("maximum", y, c.float(lowest))
		}
		if !c.none(highest) {
			y = c.with("minimum", y, c.float(highest))
		}
		c.give(y)
	}
}

// withNumber compares a tensor with a number.
func withNumber(kindName string) func(c *call) {
	return func(c *call) { c.give(c.with(kindName, c.tensor("self"), c.number("other"))) }
}

func powScalar(c *call) {
	c.give(c.one("pow", kind.Args{"a": c.tensor("self"), "b": c.scalar(c.float("exponent"))}))
}

// divMode divides and rounds towards minus infinity ("floor") or does not round (None).
func divMode(c *call) {
	y := c.one("div", kind.Args{"a": c.tensor("self"), "b": c.tensor("other")})
	if !c.none("rounding_mode") {
		if c.text("rounding_mode") != "floor" {
			c.refuse("rounding_mode", `None or "floor"`)
		}
		y = c.one("floor", kind.Args{"x": y})
	}
	c.give(y)
}

func rmsNorm(c *call) {
	const byDefault = 0x1p-23 // the machine epsilon of f32
	c.give(c.one("rms_norm",
		kind.Args{"x": c.tensor("x"), "weight": c.tensor("weight"), "eps": c.floatOr("eps", byDefault)}))
}

func layerNorm(c *call) {
	x, shape := c.tensor("input"), c.ints("normalized_shape")
	if len(shape) != 1 {
		c.refuse("normalized_shape", "the size of the last dim")
		return
	}
	weight, bias := c.filled(1, shape...), c.filled(0, shape...)
	if !c.none("weight") {
		weight = c.tensor("weight")
	}
	if !c.none("bias") {
		bias = c.tensor("bias")
	}
	c.give(c.one("layer_norm", kind.Args{"x": x, "weight": weight, "bias": bias, "eps": c.float("eps")}))
}

// alongLast lets an operator work along the dim `axis` of x. The operator itself, `apply`, always works along
// the last dim. alongLast therefore swaps the two dims before the operator, and swaps them back afterwards.
func (c *call) alongLast(x graph.ValueID, axis int, apply func(x graph.ValueID) graph.ValueID) graph.ValueID {
	last := len(c.MaxDims(x)) - 1
	if axis == last || c.Err() != nil {
		return apply(x)
	}
	order := swapped(axis, last)
	y := apply(c.one("permute", kind.Args{"x": x, "dims": order}))
	return c.one("permute", kind.Args{"x": y, "dims": order})
}

// swapped returns the order of dims for a permute that swaps a dim and the last dim.
func swapped(axis, last int) []int {
	order := make([]int, last+1)
	for k := range order {
		order[k] = k
	}
	order[axis], order[last] = last, axis
	return order
}

func softmax(c *call) {
	x := c.tensor("self")
	c.give(c.alongLast(x, c.axis(x, c.int("dim")), func(x graph.ValueID) graph.ValueID {
		return c.one("softmax", kind.Args{"x": x})
	}))
}

func reduce(kindName string) func(c *call) {
	return func(c *call) {
		c.give(c.one(kindName,
			kind.Args{"x": c.tensor("self"), "dims": c.ints("dim"), "keepdim": c.bool("keepdim")}))
	}
}

// argmax returns the builder for argmax, or for argmin if `smallest` is true. argmin(x) is computed as
// argmax(-x).
func argmax(smallest bool) func(c *call) {
	return func(c *call) {
		x := c.tensor("self")
		if smallest {
			x = c.one("neg", kind.Args{"x": x})
		}
		axis, keep := c.axis(x, c.int("dim")), c.bool("keepdim")
		if axis == len(c.MaxDims(x))-1 || c.Err() != nil {
			c.give(c.one("argmax", kind.Args{"x": x, "keepdim": keep}))
			return
		}
		y := c.alongLast(x, axis, func(x graph.ValueID) graph.ValueID {
			return c.one("argmax", kind.Args{"x": x, "keepdim": true})
		})
		if !keep {
			y = c.without(y, axis)
		}
		c.give(y)
	}
}

func rotary(c *call) {
	c.give(c.all("apply_rotary_emb", kind.Args{
		"q": c.tensor("xq"), "k": c.tensor("xk"), "cos": c.tensor("freqs_cos"), "sin": c.tensor("freqs_sin"),
	})...)
}

func rotaryHF(c *call) {
	c.give(c.all("apply_rotary_emb_hf", kind.Args{
		"q": c.tensor("xq"), "k": c.tensor("xk"), "cos": c.tensor("freqs_cos"), "sin": c.tensor("freqs_sin"),
		"start_pos": c.sym("start_pos"),
	})...)
}

func rotaryInterleaved(c *call) {
	c.give(c.one("apply_rotary_emb_interleaved", kind.Args{
		"x":     c.tensor("x"),
		"freqs": c.tensor("freqs_cis"),
	}))
}

// sdpaWithCache computes causal attention with a cache. It ignores the argument seq_len, for which exporters
// write a constant, and takes the number of tokens from the shape of the query.
func sdpaWithCache(c *call) {
	scale := 0.0 // 1/sqrt(head dim)
	switch {
	case !c.none("attn_mask"):
		c.refuse("attn_mask", "None, because attention with a cache is causal")
	case !c.none("dropout_p") && c.float("dropout_p") != 0:
		c.refuse("dropout_p", "0")
	case !c.none("is_causal") && !c.bool("is_causal"):
		c.refuse("is_causal", "true")
	case !c.none("scale"):
		if scale = c.float("scale"); scale == 0 {
			c.refuse("scale", "a number other than 0")
		}
	}
	c.give(c.one("sdpa_with_kv_cache", kind.Args{
		"q": c.tensor("query"), "k": c.tensor("key"), "v": c.tensor("value"),
		"k_cache": c.tensor("key_cache"),
		"v_cache": c.tensor("value_cache"), "input_pos": c.sym("start_pos"), "scale": scale,
	}))
}

// sdpa computes attention without a cache: softmax(scale * q * k' + mask) * v, where k' is k transposed.
func sdpa(c *call) {
	q := c.tensor("q")
	scale := c.floatOr("scale", 1/math.Sqrt(float64(max(c.lastDim(q), 1))))
	scores := c.one("bmm", kind.Args{"a": q, "b": c.tensor("k"), "transposed": true, "scale": scale})
	if !c.none("attn_mask") {
		scores = c.one("add", kind.Args{"a": scores, "b": c.tensor("attn_mask")})
	}
	c.give(c.one("bmm", kind.Args{"a": c.one("softmax", kind.Args{"x": scores}), "b": c.tensor("v")}))
}

func matrixProduct(c *call) {
	c.give(c.one("bmm", kind.Args{"a": c.tensor("self"), "b": c.tensor("mat2")}))
}

// addmm computes beta * self + alpha * mat1 * mat2, where mat1 * mat2 is a matrix product.
func addmm(c *call) {
	product := c.one("bmm", kind.Args{
		"a": c.tensor("mat1"), "b": c.tensor("mat2"),
		"scale": c.float("alpha"),
	})
	c.give(c.one("add", kind.Args{"a": product, "b": c.tensor("self"), "alpha": c.float("beta")}))
}

func indexSelect(c *call) {
	x := c.tensor("self")
	axis := c.axis(x, c.int("dim"))
	c.give(c.one("index_select", kind.Args{"x": x, "dim": axis, "index": c.indices("index", x, axis)}))
}

func updateCache(c *call) {
	cache := c.tensor("cache")
	c.all("update_cache",
		kind.Args{"value": c.tensor("value"), "cache": cache, "input_pos": c.sym("start_pos")})
}

// same implements operators that only copy a tensor. Usually they need no operator of the engine.
func same(c *call) { c.give(c.copyOf(c.tensor("self"))) }

// prepack implements the upload of a constant. Usually there is nothing to do, because the engine uploads all
// constants when it loads a graph. But a tensor that operators update gets separate memory, which first
// contains the bytes of the constant.
func prepack(c *call) {
	out := c.outputs()[0]
	if !c.mutable[out] {
		c.give(c.tensor("x"))
		return
	}
	from := c.fileTensor("x")
	if from.Constant < 0 {
		c.refuse("x", "a constant")
		return
	}
	c.give(c.constant(out, from, from.Dims))
}

// convert changes the element type. Many conversions do nothing on the device, where bools and 8-bit integers
// are f32 numbers.
func convert(c *call) {
	x := c.copyOf(c.tensor("self"))
	from, to := c.fileTensor("self").Type, c.outType()
	if c.Err() != nil {
		return
	}
	a, b := elements[from].device, elements[to].device
	switch {
	case to == pte.Bool && from != pte.Bool:
		if a == graph.I32 {
			x = c.one("to_f32", kind.Args{"x": x})
		}
		x = c.one("ne", kind.Args{"a": x, "b": c.scalar(0)})
	case narrow(to) && from != to && from != pte.Bool:
		c.Errorf("conversion from %s to %s is not supported", from, to)
	case a == graph.I32 && b == graph.F32:
		x = c.one("to_f32", kind.Args{"x": x})
	case a == graph.F32 && b == graph.I32:
		x = c.one("to_i32", kind.Args{"x": x})
	}
	c.give(x)
}

// outType returns the element type of the output in the file.
func (c *call) outType() pte.Type {
	if t, ok := c.g.Values[c.outputs()[0]].(*vulkan.Tensor); ok {
		return t.Type
	}
	c.Errorf("the output is not a tensor")
	return pte.Float32
}

// narrow reports whether a type is an 8-bit integer type. The device stores these types as f32, which also
// holds numbers outside their range.
func narrow(t pte.Type) bool { return t == pte.Int8 || t == pte.Uint8 }

// without returns a view of x without the given dims, which have size 1.
func (c *call) without(x graph.ValueID, axes ...int) graph.ValueID {
	gone := map[int]bool{}
	for _, k := range axes {
		gone[k] = true
	}
	var keep []int
	for k := range c.MaxDims(x) {
		if !gone[k] {
			keep = append(keep, k)
		}
	}
	return c.view(x, c.shapeOf(x, keep)...)
}

// shapeOf returns the shape of a view of x. Dim i of the view is the dim of x with the index axes[i]; an
// index of -1 stands for a new dim of size 1. If only one dim can change from run to run, its size is
// basic.Rest, and the view computes the size from the other dims.
func (c *call) shapeOf(x graph.ValueID, axes []int) []kind.Int {
	changing := 0
	for _, k := range axes {
		if k >= 0 && c.MinDims(x)[k] != c.MaxDims(x)[k] {
			changing++
		}
	}
	dims := make([]kind.Int, len(axes))
	for i, k := range axes {
		switch {
		case k < 0:
			dims[i] = kind.Fixed(1)
		case changing == 1 && c.MinDims(x)[k] != c.MaxDims(x)[k]:
			dims[i] = basic.Rest
		default:
			dims[i] = c.dim(x, k)
		}
	}
	return dims
}

func squeeze(c *call) {
	x := c.tensor("self")
	var gone []int
	for _, k := range c.ints("dim") {
		if k = c.axis(x, k); c.Err() == nil && c.MaxDims(x)[k] == 1 {
			gone = append(gone, k)
		}
	}
	c.give(c.without(c.copyOf(x), gone...))
}

func unsqueeze(c *call) {
	x, at := c.tensor("self"), c.int("dim")
	rank := len(c.MaxDims(x))
	if at < 0 {
		at += rank + 1
	}
	if at < 0 || at > rank {
		c.refuse("dim", "the index of a dim of the result")
		return
	}
	var axes []int
	for k := range rank + 1 {
		switch {
		case k < at:
			axes = append(axes, k)
		case k == at:
			axes = append(axes, -1)
		default:
			axes = append(axes, k-1)
		}
	}
	c.give(c.view(x, c.shapeOf(x, axes)...))
}

// viewCopy returns a view with other dims. Sometimes the shape of x can change, but the file states only the
// maximum sizes of the view. One dim of the view then has to change with x. viewCopy chooses the first dim
// that can do this while all other dims keep their sizes, and sets its size to basic.Rest.
func viewCopy(c *call) {
	x, dims := c.tensor("self"), c.syms("size")
	if c.Err() != nil {
		return
	}
	known := true
	for _, d := range dims {
		known = known && !d.IsSym && d != basic.Rest
	}
	lowest, most := graph.Numel(c.MinDims(x)), graph.Numel(c.MaxDims(x))
	if known && lowest != most {
		for k, d := range dims {
			if d.Fixed > 0 && most%d.Fixed == 0 && lowest%(most/d.Fixed) == 0 {
				dims[k] = basic.Rest
				break
			}
		}
	}
	c.give(c.view(x, dims...))
}

func selectCopy(c *call) {
	c.give(c.one("select", kind.Args{"x": c.tensor("self"), "dim": c.int("dim"), "index": c.int("index")}))
}

// sliceCopy selects a range of a dim. If the file computes the end of the range as start + length, the engine
// gets the length instead of the end, so that the size of the result is known.
func sliceCopy(c *call) {
	args := kind.Args{
		"x": c.tensor("self"), "dim": c.int("dim"), "start": c.symOr("start", 0),
		"end":  c.symOr("end", basic.ToEnd),
		"step": c.int("step"),
	}
	x := c.tensor("self")
	axis := c.axis(x, c.int("dim"))
	if c.Err() != nil {
		return
	}
	first, toEnd := args["start"], args["end"] == kind.Fixed(basic.ToEnd) && args["step"] == 1
	if toEnd && (first == kind.Fixed(0) || first == kind.Fixed(-1) && c.MaxDims(x)[axis] == 1) {
		c.give(c.copyOf(x)) // the range is the whole dim
		return
	}
	if id, _ := c.arg("end"); args["step"] == 1 {
		if _, is := c.g.Values[id].(vulkan.SymInt); is {
			sum, start := c.m.values[id].sum, args["start"]
			for k := range sum {
				if length := sum[1-k]; sum[k] == start && sum[k].IsSym {
					delete(args, "end")
					args["length"] = length
					break
				}
			}
		}
	}
	c.give(c.one("slice", args))
}

func split(c *call) {
	x, sizes := c.tensor("self"), c.ints("split_sizes")
	axis := c.axis(x, c.int("dim"))
	var parts []graph.ValueID
	start := 0
	for _, n := range sizes {
		parts = append(parts, c.one("slice", kind.Args{"x": x, "dim": axis, "start": start, "length": n}))
		start += n
	}
	c.give(parts...)
}

func permute(c *call) {
	c.give(c.one("permute", kind.Args{"x": c.tensor("self"), "dims": c.ints("dims")}))
}

func transpose(c *call) {
	x := c.tensor("self")
	if len(c.MaxDims(x)) < 2 {
		c.give(c.copyOf(x))
		return
	}
	c.give(c.one("permute", kind.Args{"x": x, "dims": []int{1, 0}}))
}

// expand repeats x along dims of size 1. A dim whose size changes from run to run is not repeated.
func expand(c *call) {
	x, sizes := c.tensor("self"), c.ints("size")
	if c.Err() != nil {
		return
	}
	lowest, most := c.MinDims(x), c.MaxDims(x)
	ahead := len(sizes) - len(most)
	for k := range most {
		if at := ahead + k; at >= 0 && lowest[k] != most[k] && sizes[at] == most[k] {
			sizes[at] = -1
		}
	}
	c.give(c.one("expand", kind.Args{"x": x, "size": sizes}))
}

func flip(c *call) {
	c.give(c.one("flip", kind.Args{"x": c.tensor("self"), "dims": c.ints("dims")}))
}

func cat(c *call) {
	c.give(c.one("cat", kind.Args{"parts": c.tensors("tensors"), "dim": c.int("dim")}))
}
