// 5-bit weights q, the low four bits of eight to a word, column k of them at bits 4k, and the fifth ones of
// 32 columns in a word; 32 columns have a scale and a zero, halves. A weight is q * scale + zero.
{{define "format_bindings"}}
{{- template "fives_bindings" .}}
{{template "row_scales_binding" (set . "Of" "scale")}}
{{template "row_scales_binding" (set . "Of" "zero")}}
{{- end}}

{{define "format_functions"}}
{{- template "fives_functions" (set . "Middle" 0)}}
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

{{define "gemv_offsets"}}
{{- template "row_scales_offsets" (set . "Of" "scale")}}
{{- template "row_scales_offsets" (set . "Of" "zero")}}
{{- end}}

{{define "gemv_scales"}}
{{- template "row_scales" (set . "Of" "scale")}}
{{- template "row_scales" (set . "Of" "zero")}}
{{- end}}

{{define "gemv_load"}}
{{- template "fives_gemv_load" .}}
{{- end}}
