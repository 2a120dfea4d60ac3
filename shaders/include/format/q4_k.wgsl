// 4-bit weights q, eight to a word, column k of them at bits 4k; 32 columns have a scale and a zero of 6
// bits, and 256 two halves, what these count in. A weight is q * scale - zero.
{{define "format_bindings"}}
{{- template "nibbles_binding" .}}
{{- template "sixes_binding" .}}
{{- end}}

{{define "format_functions"}}
{{- template "nibbles_load" .}}

{{template "nibbles_floats" .}}
{{- end}}

{{define "format_scale"}}
{{- template "sixes_scale" .}}
{{- end}}

{{define "format_zero"}}
{{- template "sixes_zero" .}}
{{- end}}

{{define "gemv_load"}}
{{- template "nibbles_gemv_load" .}}
{{- end}}
