// A weight is level[q] * (scale - 32) * super. q has 4 bits. A word has 8 columns, and column k starts at bit
// 4k. 32 columns share a 6-bit scale. 256 columns share super, which is f16.
{{define "format_bindings"}}
{{- template "nibbles_binding" .}}
{{template "sixes_binding" .}}
{{- template "supers_binding" .}}
{{- end}}

{{define "format_functions"}}
{{- template "nibbles_load" .}}
{{- end}}

{{define "format_floats"}}
{{- template "levels_floats" .}}
{{- end}}

{{define "gemv_begin"}}
{{- template "levels_begin" .}}
{{- end}}

{{define "format_scale"}}
{{template "sixes_function" (set . "SixesPer" 1 "Middle" 32)}}

{{template "supers_function" (set . "Which" 0)}}

fn scale(row: u32, eight: u32) -> f32 {
  return six(row, eight / 4u) * super_scale(row, eight);
}
{{- end}}

{{define "wide_row"}}
{{- template "nibbles_row" .}}
{{- end}}

{{define "wide_bits"}}
{{- template "nibbles_bits" .}}
{{- end}}

{{define "wide_scales"}}
{{- template "sixes_scales" (set . "SixesPer" 1 "Middle" 32)}}
{{- end}}

{{define "wide_factors"}}
{{- template "supers_factors" .}}
{{- template "sixes_words" (set . "SixesPer" 1)}}
      let scale0 = first_sixes(sixes) * super_scale;
{{- end}}
