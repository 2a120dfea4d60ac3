// A weight is q * scale - zero. q has 4 bits. A word has 8 columns, and column k starts at bit 4k. 32 columns
// share a 6-bit scale and a 6-bit zero. 256 columns share two super-block scales, which are f16: scale and
// zero are multiplied by them.
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
