// 3-bit weights q: of 32 columns each of three words has eight, four from bit 4 of either half on. Below
// them, at bit 1 of a half, is one of the last eight columns, and at bit 0 a bit of the fourth of these. The
// words 0 and 1 are in weights, 2 in thirds. 16 columns have a scale of 6 bits, and 256 a super, a half. A
// weight is (q - 4) * (scale - 32) * super.
{{define "format_bindings"}}
{{- if .Wide}}
{{binding}} var<storage, read> weights: array<vec2<u32>>; // [n, {{.Chunks}}]
{{- else}}
{{binding}} var<storage, read> weights: array<u32>; // [n, columns / 32, 2]
{{- end}}
{{binding}} var<storage, read> thirds: array<u32>; // [n, columns / 32]
{{template "sixes_binding" .}}
{{- template "supers_binding" .}}
{{- end}}

{{define "format_functions"}}
alias Bits = vec4<u32>; // two columns each, at bits 4, 7, 4 and 7 of both halves

// The eight of a word, and the last of three words.
fn own_eight(w: u32) -> Bits {
  return vec4<u32>(w, w, w >> 6u, w >> 6u);
}

fn last_eight(w: vec3<u32>) -> Bits {
  return vec4<u32>(w.x << 3u, w.y << 6u, w.z << 3u,
    ((w.x << 7u) & 0x00800080u) | ((w.y << 8u) & 0x01000100u) | ((w.z << 9u) & 0x02000200u));
}
{{- if not .Wide}}

fn load(row: u32, eight: u32) -> Bits {
  let at = row * ({{.Columns}} / 32u) + eight / 4u;
  let words = vec3<u32>(weights[2u * at], weights[2u * at + 1u], thirds[at]);
  let own = select(select(words.x, words.y, (eight & 1u) == 1u), words.z, (eight & 2u) == 2u);
  return select(own_eight(own), last_eight(words), (eight & 3u) == 3u);
}
{{- end}}
{{- end}}

// As halves 64 + q and 8 + q, whose mantissas count in ones from bits 4 and 7 on.
{{define "format_halves"}}
const excess = vec4<f32>(68.0, 12.0, 68.0, 12.0);

fn halves(b: Bits) -> vec4<u32> {
  return (b & vec4<u32>(0x00700070u, 0x03800380u, 0x00700070u, 0x03800380u)) |
    vec4<u32>(0x54005400u, 0x48004800u, 0x54005400u, 0x48004800u);
}
{{- end}}

{{define "format_scale"}}
{{template "sixes_function" (set . "SixesPer" 2 "Middle" 32)}}

{{template "supers_function" (set . "Which" 0)}}

fn scale(row: u32, eight: u32) -> f32 {
  return six(row, eight / 2u) * super_scale(row, eight);
}
{{- end}}

{{define "format_supers"}}{{end}}

{{define "wide_row"}}
alias Row = vec3<u32>;

fn load_row(row: u32, chunk: u32) -> Row {
  let at = row * {{.Chunks}}u + chunk;
  return vec3<u32>(weights[at], thirds[at]);
}
{{- end}}

{{define "wide_bits"}}
{{- if eq .E 3}}last_eight({{.Row}}){{else}}own_eight({{.Row}}[{{.E}}]){{end}}
{{- end}}

{{define "wide_scales"}}
{{- template "sixes_scales" (set . "SixesPer" 2 "Middle" 32)}}
{{- end}}

{{define "wide_factors"}}
{{- template "supers_factors" .}}
{{- template "sixes_words" (set . "SixesPer" 2)}}
      let scale0 = first_sixes(sixes);
      let scale1 = second_sixes(sixes);
{{- end}}
