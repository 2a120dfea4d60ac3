// A weight is (q - 32) * scale * super. q has 6 bits. One word has the low four bits of 8 columns, and column
// k starts at bit 4k. Another word has the high two bits of 16 columns. One shift moves the high bits of 8 of
// these columns to where the function halves needs them. 16 columns share a scale, which is a signed byte.
// 256 columns share super, which is f16.
{{define "format_bindings"}}
{{- template "nibbles_binding" .}}
// [n, columns / {{if .Wide}}32{{else}}16{{end}}]
{{binding}} var<storage, read> highs: array<{{if .Wide}}vec2<u32>{{else}}u32{{end}}>;
{{- template "sixteens_binding" .}}
{{- template "supers_binding" .}}
{{- end}}

{{define "format_functions"}}
struct Bits {
  low: u32,
  high: u32,
}
{{- if not .Wide}}

fn load(row: u32, eight: u32) -> Bits {
  let at = row * ({{.Columns}} / 8u) + eight;
  let high = highs[at >> 1u];
  return Bits(weights[at], select(high << 4u, high >> 4u, (at & 1u) == 1u));
}
{{- end}}
{{- end}}

// Returns the weights as mantissas of f16 numbers, where they start at bit 0 or 4.
{{define "format_halves"}}
const turn = vec4<f32>(0x1p24f, 0x1p20f, 0x1p24f, 0x1p20f);

fn halves(b: Bits) -> vec4<u32> {
  let low = b.low >> 8u;
  let high = b.high >> 2u;
  return vec4<u32>(
    (b.low & 0x000f000fu) | (b.high & 0x00300030u),
    (b.low & 0x00f000f0u) | (b.high & 0x03000300u),
    (low & 0x000f000fu) | (high & 0x00300030u),
    (low & 0x00f000f0u) | (high & 0x03000300u));
}
{{- end}}

{{define "format_middle"}}32.0{{end}}

{{define "format_scale"}}
{{template "sixteens_function" .}}

{{template "supers_function" (set . "Which" 0)}}

fn scale(row: u32, eight: u32) -> f32 {
  return f32(bitcast<i32>(sixteen(row, eight) << 24u) >> 24u) * super_scale(row, eight);
}
{{- end}}

{{define "wide_row"}}
struct Row {
  low: vec4<u32>,
  high: vec2<u32>,
}

fn load_row(row: u32, chunk: u32) -> Row {
  let at = row * {{.Chunks}}u + chunk;
  return Row(weights[at], highs[at]);
}
{{- end}}

{{define "wide_bits"}}Bits({{.Row}}.low[{{.E}}],
        {{.Row}}.high[{{div .E 2}}]{{if eq .E 0 2}} << 4u{{else}} >> 4u{{end}})
{{- end}}

{{define "wide_scales"}}
{{- template "sixteens_scales" .}}

// Converts four signed bytes to floats. Each byte becomes an f16 number with the value 1024 + 128 + byte.
fn bytes(w: u32) -> vec4<f32> {
  let a = unpack2x16float((w & 0x00ff00ffu) ^ 0x64806480u);
  let b = unpack2x16float(((w >> 8u) & 0x00ff00ffu) ^ 0x64806480u);
  return vec4<f32>(a.x, b.x, a.y, b.y) - 1152.0;
}
{{- end}}

{{define "wide_factors"}}
{{- template "supers_factors" .}}
{{- range $g := 2}}
      let scale{{$g}} = bytes(scale_bits.bytes[{{$g}}]) * super_scale;
{{- end}}
{{- end}}
