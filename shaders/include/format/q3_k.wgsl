// 3-bit weights q: the low two as twos.wgsl has them, the third ones of 32 columns in a word, where those of
// an eight are shifted to the places that halves have for them, all at once. 16 columns have a scale of 6
// bits, and 256 a super, a half. A weight is (q - 4) * (scale - 32) * super.
{{define "format_bindings"}}
{{- template "twos_binding" .}}
{{binding}} var<storage, read> highs: array<u32>; // [n, columns / 32]
{{template "sixes_binding" .}}
{{- template "supers_binding" .}}
{{- end}}

{{define "format_functions"}}
struct Bits {
  low: u32, // at bits 1 to 8 of both halves
  high: u32, // at bits 3, 5, 7 and 9
}
{{- if not .Wide}}

fn load(row: u32, eight: u32) -> Bits {
  let at = row * ({{.Columns}} / 8u) + eight;
  let low = weights[at >> 1u];
  let high = highs[at >> 2u];
  return Bits(select(low << 1u, low >> 7u, (at & 1u) == 1u),
    select(high << 3u, high >> 5u, (at & 2u) == 2u) >> (at & 1u));
}
{{- end}}
{{- end}}

// As halves 32 + q and 8 + q, whose mantissas count in ones from bits 5 and 7 on.
{{define "format_halves"}}
const excess = vec4<f32>(36.0, 12.0, 36.0, 12.0);

fn halves(b: Bits) -> vec4<u32> {
  let low = b.low << 4u;
  let high = b.high << 4u;
  return vec4<u32>(
    (low & 0x00600060u) | (high & 0x00800080u) | 0x50005000u,
    (low & 0x01800180u) | (high & 0x02000200u) | 0x48004800u,
    (b.low & 0x00600060u) | (b.high & 0x00800080u) | 0x50005000u,
    (b.low & 0x01800180u) | (b.high & 0x02000200u) | 0x48004800u);
}
{{- end}}

{{define "format_scale"}}
{{template "sixes_function" (set . "SixesPer" 2 "Middle" 32)}}

{{template "supers_function" (set . "Which" 0)}}

fn scale(row: u32, eight: u32) -> f32 {
  return six(row, eight / 2u) * super_scale(row, eight);
}
{{- end}}

{{define "wide_row"}}
struct Row {
  low: vec2<u32>,
  high: u32,
}

fn load_row(row: u32, chunk: u32) -> Row {
  let at = row * {{.Chunks}}u + chunk;
  return Row(weights[at], highs[at]);
}
{{- end}}

{{define "wide_bits"}}Bits({{.Row}}.low[{{div .E 2}}]{{if eq .E 0 2}} << 1u{{else}} >> 7u{{end}},
        {{.Row}}.high
{{- if eq .E 0}} << 3u{{else if eq .E 1}} << 2u{{else if eq .E 2}} >> 5u{{else}} >> 6u{{end}})
{{- end}}

{{define "wide_scales"}}
{{- template "sixes_scales" (set . "SixesPer" 2 "Middle" 32)}}
{{- end}}

{{define "wide_factors"}}
{{- template "supers_factors" .}}
{{- template "sixes_words" (set . "SixesPer" 2)}}
      let scale0 = first_sixes(sixes) * super_scale;
      let scale1 = second_sixes(sixes) * super_scale;
{{- end}}
