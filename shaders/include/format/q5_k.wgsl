// 5-bit weights q, as fives.wgsl has them; 32 columns have a scale and a zero of 6 bits, and 256 two halves,
// what these count in. A weight is q * scale - zero.
{{define "format_bindings"}}
{{- template "fives_bindings" .}}
{{template "sixes_binding" .}}
{{template "supers_binding" .}}
{{- end}}

{{define "format_functions"}}
{{- template "fives_functions" .}}
{{- end}}

{{define "format_halves"}}
{{- template "fives_halves" .}}
{{- end}}

{{define "format_scale"}}
{{- template "sixes_scale" .}}
{{- end}}

{{define "format_zero"}}
{{- template "sixes_zero" .}}
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

{{define "wide_scales"}}
{{- template "sixes_scales" (set . "SixesPer" 2 "Middle" 0)}}
{{- end}}

{{define "wide_factors"}}
{{- template "sixes_factors" .}}
{{- end}}
