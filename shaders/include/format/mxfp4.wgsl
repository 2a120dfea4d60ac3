// A weight is float * scale. The float has 4 bits, and a word has the floats of 8 columns (e2m1.wgsl). 32
// columns share a scale, which is 2^(e - 128) for a byte e.
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
// 2^-127 and 2^-128 are subnormal floats, so their bits are in the mantissa.
fn scales_of(e: vec4<u32>) -> vec4<f32> {
  return bitcast<vec4<f32>>(
    select((e - 1u) << vec4<u32>(23u), vec4<u32>(0x200000u) << (e & vec4<u32>(1u)), e < vec4<u32>(2u)));
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
