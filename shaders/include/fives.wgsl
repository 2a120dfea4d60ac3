// The parts that formats with 5-bit weights q share. 32 columns, which are 4 groups of 8, have five words. A
// 16-bit half of a word has four columns of a group. Words 0 to 3 are in the array weights: each half of word
// g has three columns of group g, at bits 0, 5 and 10. Word 4 is in the array fifths: each half has the
// fourth column of groups 0, 1 and 2, at bits 0, 5 and 10. The fourth column of group 3 has one bit in each
// of the five words, at bit 15.
{{define "fives_bindings"}}
{{- template "nibbles_binding" .}}
{{binding}} var<storage, read> fifths: array<u32>; // [n, columns / 32]
{{- end}}

{{define "fives_functions"}}
alias Bits = vec4<u32>; // each word has two columns, one in each half: at bit 0, 5, 0 and 0

fn load(row: u32, eight: u32) -> Bits {
  let at = row * ({{.Columns}} / 8u) + eight;
  let own = weights[at];
  let rest = fifths[at / 4u];
  var fourth = rest >> ((eight & 3u) * 5u);
  if ((eight & 3u) == 3u) {
    fourth = ((weights[at - 3u] >> 15u) & 0x00010001u) | ((weights[at - 2u] >> 14u) & 0x00020002u) |
      ((weights[at - 1u] >> 13u) & 0x00040004u) | ((own >> 12u) & 0x00080008u) |
      ((rest >> 11u) & 0x00100010u);
  }
  return Bits(own, own, own >> 10u, fourth);
}
{{- end}}

{{define "fives_halves"}}
const turn = vec4<f32>(0x1p24f, 0x1p19f, 0x1p24f, 0x1p24f);

fn halves(b: Bits) -> vec4<u32> {
  return b & vec4<u32>(0x001f001fu, 0x03e003e0u, 0x001f001fu, 0x001f001fu);
}
{{- end}}

{{define "fives_row"}}
struct Row {
  own: vec4<u32>,
  fifth: u32,
}

fn load_row(row: u32, chunk: u32) -> Row {
  let at = row * {{.Chunks}}u + chunk;
  return Row(weights[at], fifths[at]);
}
{{- end}}

// The words that halves() would return, for group E of Row. Columns above bit 9 are shifted down: in each
// word by a different number of bits, so that the bits 15 of all words end up next to each other. fives_turn
// has the factors that match these shifts.
{{define "fives_wide"}}
{{- $w := printf "%s.own[%d]" .Row .E}}vec4<u32>({{$w}} & 0x001f001fu, {{$w}} & 0x03e003e0u,
{{- $fifth := printf "%s.fifth" .Row}}
{{- if eq .E 0}}
        ({{$w}} >> 10u) & 0x001f001fu, {{$fifth}} & 0x001f001fu)
{{- else if eq .E 1}}
        ({{$w}} >> 9u) & 0x003e003eu, {{$fifth}} & 0x03e003e0u)
{{- else if eq .E 2}}
        ({{$w}} >> 8u) & 0x007c007cu, ({{$fifth}} >> 6u) & 0x01f001f0u)
{{- else}}
        ({{$w}} >> 7u) & 0x00f800f8u,
        (({{.Row}}.own[0] >> 10u) & 0x00200020u) | (({{.Row}}.own[1] >> 9u) & 0x00400040u) |
        (({{.Row}}.own[2] >> 8u) & 0x00800080u) | (({{$w}} >> 7u) & 0x01000100u) |
        (({{$fifth}} >> 6u) & 0x02000200u))
{{- end}}
{{- end}}

{{define "fives_turn"}}
{{- if eq .E 0}}vec4<f32>(0x1p24f, 0x1p19f, 0x1p24f, 0x1p24f)
{{- else if eq .E 1}}vec4<f32>(0x1p24f, 0x1p19f, 0x1p23f, 0x1p19f)
{{- else if eq .E 2}}vec4<f32>(0x1p24f, 0x1p19f, 0x1p22f, 0x1p20f)
{{- else}}vec4<f32>(0x1p24f, 0x1p19f, 0x1p21f, 0x1p19f)
{{- end}}
{{- end}}
