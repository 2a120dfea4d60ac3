// A weight is level[q] * scale. q has 4 bits. A word has 8 columns, and column k starts at bit 4k. 32 columns
// share a scale, which is f16.
{{define "format_bindings"}}
{{- template "nibbles_binding" .}}
{{template "row_scales_binding" (set . "Of" "scale")}}
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
{{- if not .GEMV}}
{{- template "row_scales_function" (set . "Of" "scale")}}
{{- end}}
{{- end}}

{{define "wide_row"}}
{{- template "nibbles_row" .}}
{{- end}}

{{define "wide_bits"}}
{{- template "nibbles_bits" .}}
{{- end}}

{{define "gemv_scales"}}
{{- template "row_scales_gemv" .}}
{{- end}}

{{define "gemv_factors"}}
{{- template "row_scales_factors" .}}
{{- end}}
