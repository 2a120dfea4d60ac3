// A weight is (q - 4) * (scale - 32) * super. q has 3 bits. 32 columns, which are 4 groups of 8, have three
// words. A 16-bit half of a word has four columns of a group: word g has those of group g, at bits 0, 3, 6
// and 9. Group 3 uses the other bits: each half of each word has one of its columns at bit 12, and one bit of
// its fourth column at bit 15. Words 0 and 1 are in the array weights, and word 2 is in the array thirds. 16
// columns share a 6-bit scale. 256 columns share super, which is f16.
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
alias Bits = vec4<u32>; // each word has two columns, one in each half: at bit 0, 3, 6 and 0

fn load(row: u32, eight: u32) -> Bits {
  let at = row * ({{.Columns}} / 32u) + eight / 4u;
  let w = vec3<u32>(weights[2u * at], weights[2u * at + 1u], thirds[at]);
  let own = select(select(w.x, w.y, (eight & 1u) == 1u), w.z, (eight & 2u) == 2u);
  let fourth = ((w.x >> 15u) & 0x00010001u) | ((w.y >> 14u) & 0x00020002u) | ((w.z >> 13u) & 0x00040004u);
  return select(Bits(own, own, own, own >> 9u), Bits(w.x >> 12u, w.y >> 9u, w.z >> 6u, fourth),
    (eight & 3u) == 3u);
}
{{- end}}

{{define "format_halves"}}
const turn = vec4<f32>(0x1p24f, 0x1p21f, 0x1p18f, 0x1p24f);

fn halves(b: Bits) -> vec4<u32> {
  return b & vec4<u32>(0x00070007u, 0x00380038u, 0x01c001c0u, 0x00070007u);
}
{{- end}}

{{define "format_middle"}}4.0{{end}}

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

// The words that halves() would return, for group E of Row. Columns above bit 8 are shifted down: in each
// word by a different number of bits, so that the bits 15 of all words end up next to each other. wide_turn
// has the factors that match these shifts.
{{define "wide_halves"}}
{{- if lt .E 3}}
{{- $w := printf "%s[%d]" .Row .E}}vec4<u32>({{$w}} & 0x00070007u, {{$w}} & 0x00380038u, {{$w}} & 0x01c001c0u,
        {{if eq .E 0}}({{$w}} >> 9u) & 0x00070007u
        {{- else if eq .E 1}}({{$w}} >> 8u) & 0x000e000eu
        {{- else}}({{$w}} >> 7u) & 0x001c001cu{{end}})
{{- else}}vec4<u32>(
        ({{.Row}}.x >> 9u) & 0x00380038u, ({{.Row}}.y >> 8u) & 0x00700070u, ({{.Row}}.z >> 7u) & 0x00e000e0u,
        (({{.Row}}.x >> 9u) & 0x00400040u) | (({{.Row}}.y >> 8u) & 0x00800080u) |
        (({{.Row}}.z >> 7u) & 0x01000100u))
{{- end}}
{{- end}}

{{define "wide_turn"}}
{{- if eq .E 0}}vec4<f32>(0x1p24f, 0x1p21f, 0x1p18f, 0x1p24f)
{{- else if eq .E 1}}vec4<f32>(0x1p24f, 0x1p21f, 0x1p18f, 0x1p23f)
{{- else if eq .E 2}}vec4<f32>(0x1p24f, 0x1p21f, 0x1p18f, 0x1p22f)
{{- else}}vec4<f32>(0x1p21f, 0x1p20f, 0x1p19f, 0x1p18f)
{{- end}}
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
