// The parts of formats of 5 bits, q: of 32 columns each of five words has six. In either half of the first
// four words, weights, lie three of one eight, at bits 0, 5 and 10; so lie in the fifth, fifths, the fourth
// ones of eights 0 to 2, and that of eight 3 has a bit in each word, bit 15.
{{define "fives_bindings"}}
{{- template "nibbles_binding" .}}
{{binding}} var<storage, read> fifths: array<u32>; // [n, columns / 32]
{{- end}}

{{define "fives_functions"}}
alias Bits = vec4<u32>; // two columns each, at bits 0, 5, 0 and 0 of both halves

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

// What lies above bit 9 is shifted to where halves have it, in each word to another place, so that bits 15
// come to lie side by side.
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
