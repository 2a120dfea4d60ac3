// A weight is q * scale + zero. q has 5 bits, stored as fives.wgsl describes. 32 columns share a scale and a
// zero, which are f16.
{{define "format_bindings"}}
{{- template "fives_bindings" .}}
{{template "row_scales_binding" (set . "Of" "scale")}}
{{template "row_scales_binding" (set . "Of" "zero")}}
{{- end}}

{{define "format_functions"}}
{{- template "fives_functions" .}}
{{- end}}

{{define "format_halves"}}
{{- template "fives_halves" .}}
{{- end}}

{{define "format_scale"}}
{{- if not .GEMV}}
{{- template "row_scales_function" (set . "Of" "scale")}}
{{- end}}
{{- end}}

{{define "format_zero"}}
{{- if not .GEMV}}
{{- template "row_scales_function" (set . "Of" "zero")}}
{{- end}}
{{- end}}

{{define "wide_row"}}
{{- template "fives_row" .}}
{{- end}}

{{define "wide_halves"}}
{{- template "fives_wide" .}}
{{- end}}

{{define "wide_turn"}}
{{- template "fives_turn" .}}
{{- end}}

{{define "gemv_scales"}}
{{- template "row_scales_gemv" .}}
{{- end}}

{{define "gemv_factors"}}
{{- template "row_scales_factors" .}}
{{- end}}
