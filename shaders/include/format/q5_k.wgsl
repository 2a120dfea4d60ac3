// 5-bit weights q, the low four bits of eight to a word, column k of them at bits 4k, and the fifth ones of
// 32 columns in a word; 32 columns have a scale and a zero of 6 bits, and 256 two halves, what these count
// in. A weight is q * scale - zero.
{{define "format_bindings"}}
{{- template "fives_bindings" .}}
{{- template "sixes_binding" .}}
{{- end}}

{{define "format_functions"}}
{{- template "fives_functions" (set . "Middle" 0)}}
{{- end}}

{{define "format_scale"}}
{{- template "sixes_scale" .}}
{{- end}}

{{define "format_zero"}}
{{- template "sixes_zero" .}}
{{- end}}

{{define "gemv_load"}}
{{- template "fives_gemv_load" .}}
{{- end}}
