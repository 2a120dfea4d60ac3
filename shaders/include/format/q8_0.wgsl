// A weight is q * scale. q is a signed byte. Two words have 8 columns: columns 0, 1, 4 and 5 are in the first
// word, and columns 2, 3, 6 and 7 are in the second word. 32 columns share a scale, which is f16.
{{define "format_bindings"}}
{{- if .Wide}}
{{binding}} var<storage, read> weights: array<vec4<u32>>; // [n, {{.Chunks}}]
{{- else}}
{{binding}} var<storage, read> weights: array<vec2<u32>>; // [n, columns / 8]
{{- end}}
{{template "row_scales_binding" (set . "Of" "scale")}}
{{- end}}

{{define "format_functions"}}
alias Bits = vec2<u32>;
{{- if not .Wide}}

fn load(row: u32, eight: u32) -> Bits {
  return weights[row * ({{.Columns}} / 8u) + eight];
}
{{- end}}
{{- end}}

// Returns q + 128 as mantissas of f16 numbers, where they start at bit 0.
{{define "format_halves"}}
const turn = vec4<f32>(0x1p24f);

fn halves(b: Bits) -> vec4<u32> {
  let high = b >> vec2<u32>(8u);
  return (vec4<u32>(b.x, high.x, b.y, high.y) & vec4<u32>(0x00ff00ffu)) ^ vec4<u32>(0x00800080u);
}
{{- end}}

{{define "format_middle"}}128.0{{end}}

{{define "format_scale"}}
{{- if not .GEMV}}
{{- template "row_scales_function" (set . "Of" "scale")}}
{{- end}}
{{- end}}

{{define "wide_row"}}
alias Row = vec4<u32>;

fn load_row(row: u32, chunk: u32) -> Row {
  return weights[row * {{.Chunks}}u + chunk];
}
{{- end}}

{{define "wide_bits"}}{{.Row}}{{if eq .E 0}}.xy{{else}}.zw{{end}}{{end}}

{{define "gemv_scales"}}
{{- template "row_scales_gemv" .}}
{{- end}}

{{define "gemv_factors"}}
{{- template "row_scales_factors" .}}
{{- end}}
