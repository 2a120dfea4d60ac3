// A weight is q * scale - zero. q has 5 bits, stored as fives.wgsl describes. 32 columns share a 6-bit scale
// and a 6-bit zero. 256 columns share two super-block scales, which are f16: scale and zero are multiplied by
// them.
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
