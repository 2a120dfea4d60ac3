package vulkan

import (
	"slices"
	"strconv"
	"strings"
)

// schema lists the names of an operator's arguments, separated by spaces. The name of an argument that the
// operator updates in place ends with "!". The output is not in the list.
type schema string

// updated returns the indices of the arguments that the operator updates in place.
func (s schema) updated() []int {
	var at []int
	for i, name := range strings.Fields(string(s)) {
		if strings.HasSuffix(name, "!") {
			at = append(at, i)
		}
	}
	return at
}

// Arguments returns the names of the operator's arguments. The last name is "out". The other names are
// "arg0", "arg1" and so on if the operator is unknown or has an unexpected number of arguments.
func (op *Operator) Arguments() []string {
	n := len(op.Args)
	if n == 0 {
		return nil
	}
	names := strings.Fields(strings.ReplaceAll(string(schemas[op.Name]), "!", ""))
	if len(names) != n-1 {
		names = make([]string, n-1)
		for i := range names {
			names[i] = "arg" + strconv.Itoa(i)
		}
	}
	return append(slices.Clip(names), "out")
}

// Known reports whether the names of the operator's arguments are known.
func (op *Operator) Known() bool {
	s, ok := schemas[op.Name]
	return ok && len(strings.Fields(string(s))) == len(op.Args)-1
}

const (
	oneTensor  = "self"
	twoTensors = "self other"
	alongDim   = "self dim keepdim"
	q8conv     = "x input_scale input_zero_point weights weight_sums weight_scales output_scale output_zero_point " +
		"bias kernel_size stride padding dilation groups activation"
	q8linear = "x input_scale input_zero_point weights weight_sums weight_scales output_scale " +
		"output_zero_point bias activation"
	conv = "input weight bias stride padding dilation transposed output_padding groups"
)

// schemas lists the operators that ExecuTorch's Vulkan partitioner writes.
var schemas = map[string]schema{
	// Integer arithmetic on sizes and positions.
	"sym_size.int":                   "self dim",
	"et_vk.select_as_symint.default": "x dim index",
	"add":                            "a b",
	"sub":                            "a b",
	"mul":                            "a b",
	"floordiv":                       "a b",
	"neg":                            "a",

	// Operators of language models.
	"et_vk.prepack.default":      "x",
	"et_vk.linear_q4gsw.default": "self weights weight_scales group_size bias",
	"et_vk.linear_dq8ca_q4gsw.default": "input input_scales input_zp weights weight_sums weight_scales " +
		"group_size bias",
	"et_vk.linear_qcs4w.default":                 "self weight scales",
	"et_vk.embedding_q4gsw.default":              "weight weight_scales group_size indices is_linear_weight",
	"et_vk.rms_norm.default":                     "x weight eps",
	"et_vk.apply_rotary_emb.default":             "xq xk freqs_cos freqs_sin",
	"et_vk.apply_rotary_emb_hf.default":          "xq xk freqs_cos freqs_sin start_pos",
	"et_vk.apply_rotary_emb_interleaved.default": "x freqs_cis",
	"et_vk.sdpa.default":                         "q k v attn_mask scale",
	"sdpa_with_kv_cache.default": "query key value key_cache! value_cache! start_pos seq_len attn_mask " +
		"dropout_p is_causal scale",
	"update_cache.default": "value cache! start_pos",
	"torchao.choose_qparams_affine.default": "input mapping_type block_size target_dtype quant_min " +
		"quant_max eps scale_dtype zero_point_dtype preserve_zero",

	// Quantized int8 operators.
	"et_vk.linear_q8ta_q8csw.default": "x input_scale input_zero_point weights weight_sums weight_scales " +
		"bias",
	"et_vk.q8ta_linear.default":      q8linear,
	"et_vk.q8ta_linear_gemv.default": q8linear,
	"et_vk.q8ta_conv2d.default":      q8conv,
	"et_vk.q8ta_conv2d_pw.default":   q8conv,
	"et_vk.q8ta_conv2d_dw.default":   q8conv,
	"et_vk.q8ta_conv2d_transposed.default": "x input_scale input_zero_point weights weight_sums weight_scales " +
		"output_scale output_zero_point bias kernel_size stride padding output_padding dilation groups activation",
	"et_vk.q8ta_add.default": "input_a input_b input_a_scale input_a_zero_point input_b_scale " +
		"input_b_zero_point output_scale output_zero_point alpha",
	"et_vk.q8ta_relu.default": "input input_scale input_zero_point output_scale output_zero_point",
	"et_vk.q8ta_pixel_shuffle.default": "input input_scale input_zero_point output_inv_scale " +
		"output_zero_point upscale_factor",
	"quantized_decomposed.quantize_per_tensor.default":   "input scale zero_point quant_min quant_max dtype",
	"quantized_decomposed.dequantize_per_tensor.default": "input scale zero_point quant_min quant_max dtype out_dtype",

	// Elementwise operators with one tensor.
	"aten.abs.default":         oneTensor,
	"aten.neg.default":         oneTensor,
	"aten.exp.default":         oneTensor,
	"aten.sqrt.default":        oneTensor,
	"aten.rsqrt.default":       oneTensor,
	"aten.sin.default":         oneTensor,
	"aten.cos.default":         oneTensor,
	"aten.tanh.default":        oneTensor,
	"aten.round.default":       oneTensor,
	"aten.relu.default":        oneTensor,
	"aten.sigmoid.default":     oneTensor,
	"aten.hardswish.default":   oneTensor,
	"aten.hardsigmoid.default": oneTensor,
	"aten.bitwise_not.default": oneTensor,
	"aten.logical_not.default": oneTensor,
	"aten.gelu.default":        "self approximate",
	"aten.leaky_relu.default":  "self negative_slope",
	"aten.clamp.default":       "self min max",
	"aten.hardtanh.default":    "self min_val max_val",

	// Binary and ternary elementwise operators, indexing, matrix products, convolutions, norms and pooling.
	"aten.add.Tensor":                                   "self other alpha",
	"aten.sub.Tensor":                                   "self other alpha",
	"aten.mul.Tensor":                                   twoTensors,
	"aten.div.Tensor":                                   twoTensors,
	"aten.div.Tensor_mode":                              "self other rounding_mode",
	"aten.minimum.default":                              twoTensors,
	"aten.maximum.default":                              twoTensors,
	"aten.eq.Tensor":                                    twoTensors,
	"aten.ne.Tensor":                                    twoTensors,
	"aten.lt.Tensor":                                    twoTensors,
	"aten.le.Tensor":                                    twoTensors,
	"aten.gt.Tensor":                                    twoTensors,
	"aten.ge.Tensor":                                    twoTensors,
	"aten.eq.Scalar":                                    twoTensors,
	"aten.ne.Scalar":                                    twoTensors,
	"aten.lt.Scalar":                                    twoTensors,
	"aten.le.Scalar":                                    twoTensors,
	"aten.gt.Scalar":                                    twoTensors,
	"aten.ge.Scalar":                                    twoTensors,
	"aten.index.Tensor":                                 "self indices",
	"aten.logical_and.default":                          twoTensors,
	"aten.logical_or.default":                           twoTensors,
	"aten.bitwise_and.Tensor":                           twoTensors,
	"aten.bitwise_or.Tensor":                            twoTensors,
	"aten.pow.Tensor_Scalar":                            "self exponent",
	"aten.pow.Tensor_Tensor":                            "self exponent",
	"aten.floor_divide.default":                         twoTensors,
	"aten.where.self":                                   "condition self other",
	"aten.scatter.src":                                  "self dim index src",
	"aten.index_select.default":                         "self dim index",
	"aten.gather.default":                               "self dim index sparse_grad",
	"aten.embedding.default":                            "weight indices padding_idx scale_grad_by_freq sparse",
	"aten.linear.default":                               "input weight bias",
	"aten.mm.default":                                   "self mat2",
	"aten.bmm.default":                                  "self mat2",
	"aten.addmm.default":                                "self mat1 mat2 beta alpha",
	"aten.convolution.default":                          conv,
	"et_vk.conv_with_clamp.default":                     conv + " output_min output_max",
	"et_vk.grid_priors.default":                         "self stride offset",
	"aten.grid_sampler_2d.default":                      "input grid interpolation_mode padding_mode align_corners",
	"aten.upsample_nearest2d.vec":                       "input output_size scale_factors",
	"aten.upsample_bilinear2d.vec":                      "input output_size align_corners scale_factors",
	"aten.pixel_shuffle.default":                        "self upscale_factor",
	"aten.constant_pad_nd.default":                      "self pad value",
	"aten.native_layer_norm.default":                    "input normalized_shape weight bias eps",
	"aten.native_group_norm.default":                    "input weight bias N C HxW group eps",
	"aten.avg_pool2d.default":                           "self kernel_size stride padding ceil_mode count_include_pad divisor_override",
	"aten.max_pool2d_with_indices.default":              "self kernel_size stride padding dilation ceil_mode",
	"aten.max_pool2d.default":                           "self kernel_size stride padding dilation ceil_mode",
	"aten._native_batch_norm_legit_no_training.default": "input weight bias running_mean running_var momentum eps",

	// Operators along a dim.
	"aten.amax.default":         alongDim,
	"aten.amin.default":         alongDim,
	"aten.argmax.default":       alongDim,
	"aten.argmin.default":       alongDim,
	"aten.sum.dim_IntList":      "self dim keepdim dtype",
	"aten.mean.dim":             "self dim keepdim dtype",
	"aten._softmax.default":     "self dim half_to_float",
	"aten._log_softmax.default": "self dim half_to_float",
	"aten.cumsum.default":       "self dim dtype",
	"aten.topk.default":         "self k dim largest sorted",

	// Operators that reshape, copy or fill tensors.
	"aten.view_copy.default":      "self size",
	"aten.clone.default":          "self memory_format",
	"aten.alias_copy.default":     oneTensor,
	"aten.expand_copy.default":    "self size implicit",
	"aten.repeat.default":         "self repeats",
	"aten.permute_copy.default":   "self dims",
	"aten.t_copy.default":         oneTensor,
	"aten.squeeze_copy.dims":      "self dim",
	"aten.unsqueeze_copy.default": "self dim",
	"aten.select_copy.int":        "self dim index",
	"aten.slice_copy.Tensor":      "self dim start end step",
	"aten.cat.default":            "tensors dim",
	"aten.flip.default":           "self dims",
	"aten.full.default":           "size fill_value dtype layout device pin_memory",
	"aten.zeros.default":          "size dtype layout device pin_memory",
	"aten.ones.default":           "size dtype layout device pin_memory",
	"aten.full_like.default":      "self fill_value dtype layout device pin_memory memory_format",
	"aten.zeros_like.default":     "self dtype layout device pin_memory memory_format",
	"aten.ones_like.default":      "self dtype layout device pin_memory memory_format",
	"aten.scalar_tensor.default":  "s dtype layout device pin_memory",
	"aten.arange.start_step":      "start end step dtype layout device pin_memory",
	"aten.permute.default":        "self dims",
	"aten._to_copy.default": "self dtype layout device pin_memory " +
		"non_blocking memory_format",
	"aten.split_with_sizes_copy.default":       "self split_sizes dim",
	"dim_order_ops._to_dim_order_copy.default": "self dtype layout device pin_memory non_blocking dim_order",
	"dim_order_ops._clone_dim_order.default":   "self non_blocking dim_order",
}
