// A weight is float * scale. The float has 4 bits, and a word has the floats of 8 columns (e2m1.wgsl). 16
// columns share a scale. Its byte has 4 bits of exponent and 3 bits of mantissa, and 127 means 0.
{{define "format_bindings"}}
{{- template "nibbles_binding" .}}
{{- template "byte_scales_binding" .}}
{{- end}}

{{define "format_functions"}}
{{- template "nibbles_load" .}}
{{- end}}

{{define "format_halves"}}
{{- template "e2m1_halves" .}}
{{- end}}

{{define "format_small"}}
{{- template "e2m1_small" .}}
{{- end}}

{{define "byte_scales_floats"}}
// The bits of a byte become the lowest bits of a float's exponent and the highest bits of its mantissa. The
// result is half of the number, because kernels compute twice the 4-bit floats.
fn scales_of(bytes: vec4<u32>) -> vec4<f32> {
  let b = bytes & vec4<u32>(127u);
  let normal = bitcast<vec4<f32>>((b << vec4<u32>(20u)) + vec4<u32>(119u << 23u));
  let scale = select(normal, vec4<f32>(b) * 0x1p-10f, b < vec4<u32>(8u));
  return select(scale, vec4<f32>(0.0), bytes == vec4<u32>(127u));
}
{{- end}}

{{define "format_scale"}}
{{- template "byte_scales_function" .}}
{{- end}}

{{define "wide_row"}}
{{- template "nibbles_row" .}}
{{- end}}

{{define "wide_bits"}}
{{- template "nibbles_bits" .}}
{{- end}}

{{define "wide_scales"}}
{{- template "byte_scales_wide" .}}
{{- end}}

{{define "wide_factors"}}
{{- template "byte_scales_factors" .}}
{{- end}}
