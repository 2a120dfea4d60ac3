// A weight is (q - 16) * scale. q has 5 bits, stored as fives.wgsl describes. 32 columns share a scale, which
// is f16.
{{define "format_bindings"}}
{{- template "fives_bindings" .}}
{{template "row_scales_binding" (set . "Of" "scale")}}
{{- end}}

{{define "format_functions"}}
{{- template "fives_functions" .}}
{{- end}}

{{define "format_halves"}}
{{- template "fives_halves" .}}
{{- end}}

{{define "format_middle"}}16.0{{end}}

{{define "format_scale"}}
{{- if not .GEMV}}
{{- template "row_scales_function" (set . "Of" "scale")}}
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
