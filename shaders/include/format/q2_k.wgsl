// A weight is q * scale - zero. q has 2 bits. A word has 16 columns, which are two groups of 8: the low half
// of the word has columns 0 to 3 of both groups, and the high half has columns 4 to 7 of both groups. 16
// columns share a byte, with a 4-bit scale in the low bits and a 4-bit zero in the high bits. 256 columns
// share two super-block scales, which are f16: scale and zero are multiplied by them.
{{define "format_bindings"}}
{{- if .Wide}}
{{binding}} var<storage, read> weights: array<vec2<u32>>; // [n, {{.Chunks}}]
{{- else}}
{{binding}} var<storage, read> weights: array<u32>; // [n, columns / 16]
{{- end}}
{{- template "sixteens_binding" .}}
{{- template "supers_binding" .}}
{{- end}}

{{define "format_functions"}}
alias Bits = u32; // 8 weights, in bits 0 to 7 of both 16-bit halves
{{- if not .Wide}}

fn load(row: u32, eight: u32) -> Bits {
  let at = row * ({{.Columns}} / 8u) + eight;
  return weights[at >> 1u] >> ((at & 1u) * 8u);
}
{{- end}}
{{- end}}

{{define "format_halves"}}
const turn = vec4<f32>(0x1p24f, 0x1p22f, 0x1p20f, 0x1p18f);

fn halves(w: Bits) -> vec4<u32> {
  return vec4<u32>(w) & vec4<u32>(0x00030003u, 0x000c000cu, 0x00300030u, 0x00c000c0u);
}
{{- end}}

{{define "format_scale"}}
{{template "sixteens_function" .}}

{{template "supers_function" (set . "Which" 0)}}

fn scale(row: u32, eight: u32) -> f32 {
  return f32(sixteen(row, eight) & 15u) * super_scale(row, eight);
}
{{- end}}

{{define "format_zero"}}
{{template "supers_function" (set . "Which" 1)}}

fn zero(row: u32, eight: u32) -> f32 {
  return f32((sixteen(row, eight) >> 4u) & 15u) * -super_zero(row, eight);
}
{{- end}}

{{define "format_supers"}}{{end}}

{{define "wide_row"}}
alias Row = vec2<u32>;

fn load_row(row: u32, chunk: u32) -> Row {
  return weights[row * {{.Chunks}}u + chunk];
}
{{- end}}

{{define "wide_bits"}}{{.Row}}[{{div .E 2}}]{{if eq .E 1 3}} >> 8u{{end}}{{end}}

{{define "wide_scales"}}
{{- template "sixteens_scales" .}}

fn low_bits(w: u32) -> vec4<f32> {
  let a = unpack2x16float((w & 0x000f000fu) | 0x64006400u);
  let b = unpack2x16float(((w >> 8u) & 0x000f000fu) | 0x64006400u);
  return vec4<f32>(a.x, b.x, a.y, b.y) - 1024.0;
}

const zero_excess = 64.0;

fn high_bits(w: u32) -> vec4<f32> {
  let a = unpack2x16float((w & 0x00f000f0u) | 0x54005400u);
  let b = unpack2x16float(((w >> 8u) & 0x00f000f0u) | 0x54005400u);
  return vec4<f32>(a.x, b.x, a.y, b.y);
}
{{- end}}

{{define "wide_factors"}}
{{- template "supers_factors" .}}
{{- range $g := 2}}
      let scale{{$g}} = low_bits(scale_bits.bytes[{{$g}}]);
      let zero{{$g}} = high_bits(scale_bits.bytes[{{$g}}]);
{{- end}}
{{- end}}
