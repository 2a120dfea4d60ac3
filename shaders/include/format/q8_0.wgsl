// Signed bytes q, four to a word; 32 columns have a scale, a half. A weight is q * scale.
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

{{define "format_floats"}}
// q + 128 is put under the exponent of 256, where the mantissa counts in ones from bit 15 on. No bit is lost.
fn bytes(w: u32) -> vec4<f32> {
  let u = w ^ 0x80808080u;
  return bitcast<vec4<f32>>((vec4<u32>(u << 15u, u << 7u, u >> 1u,
    u >> 9u) & vec4<u32>(0x007f8000u)) | vec4<u32>(0x43800000u)) - 384.0;
}

fn floats(b: Bits) -> Eight {
  return Eight(bytes(b.x), bytes(b.y));
}
{{- end}}

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
