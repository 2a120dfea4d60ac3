// 4-bit weights q, eight to a word, column k of them at bits 4k; 32 columns have a scale of 6 bits, and 256 a
// half, super. A weight is level[q] * (scale - 32) * super.
{{define "format_bindings"}}
{{- template "nibbles_binding" .}}
// [n, columns / 256]: super, then the high two bits of the scales, then the low four
{{binding}} var<storage, read> scales: array<vec2<u32>>;
{{- end}}

{{define "format_functions"}}
{{- template "nibbles_load" .}}

{{template "levels_floats" .}}
{{- end}}

{{define "gemv_begin"}}
{{- template "levels_begin" .}}
{{- end}}

{{define "format_scale"}}
fn scale(row: u32, eight: u32) -> f32 {
  let at = row * ({{.Columns}} / 8u) + eight;
  let block = scales[at >> 5u];
  let group = (at >> 2u) & 7u;
  let high = (block.x >> (16u + 2u * group)) & 3u;
  let low = (block.y >> (4u * group)) & 15u;
  return f32(i32(low | (high << 4u)) - 32) * unpack2x16float(block.x).x;
}
{{- end}}

{{define "gemv_load"}}
{{- template "nibbles_gemv_load" .}}
{{- end}}
