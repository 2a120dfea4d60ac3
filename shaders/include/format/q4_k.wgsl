// 4-bit weights q, eight to a word, column k of them at bits 4k; 32 columns have a scale and a zero of 6
// bits, and 256 two halves, what these count in. A weight is q * scale - zero.
{{define "format_bindings"}}
{{- template "nibbles_binding" .}}
{{template "sixes_binding" .}}
{{template "supers_binding" .}}
{{- end}}

{{define "format_functions"}}
{{- template "nibbles_load" .}}
{{- end}}

{{define "format_halves"}}
{{- template "nibbles_halves" .}}
{{- end}}

{{define "format_scale"}}
{{- template "sixes_scale" .}}
{{- end}}

{{define "format_zero"}}
{{- template "sixes_zero" .}}
{{- end}}

{{define "wide_row"}}
{{- template "nibbles_row" .}}
{{- end}}

{{define "wide_bits"}}
{{- template "nibbles_bits" .}}
{{- end}}

{{define "wide_scales"}}
{{- template "sixes_scales" (set . "SixesPer" 2 "Middle" 0)}}
{{- end}}

{{define "wide_factors"}}
{{- template "sixes_factors" .}}
{{- end}}
