// The parts of formats of 5 bits: four of them nibbles, and the fifth ones of 32 columns in a word, where
// those of an eight are shifted to the places that halves have for them, all at once.
{{define "fives_bindings"}}
{{- template "nibbles_binding" .}}
{{binding}} var<storage, read> highs: array<u32>; // [n, columns / 32]
{{- end}}

{{define "fives_functions"}}
struct Bits {
  low: u32,
  high: u32,
}
{{- if not .Wide}}

fn load(row: u32, eight: u32) -> Bits {
  let at = row * ({{.Columns}} / 8u) + eight;
  let high = highs[at >> 2u];
  return Bits(weights[at], select(high << 5u, high >> 3u, (at & 2u) == 2u) >> ((at & 1u) * 2u));
}
{{- end}}
{{- end}}

// q, of which Middle is to be taken, as halves 512 + q and 32 + q, without any error: their mantissas count
// in ones from bits 1 and 5 on.
{{define "fives_halves"}}
const excess = vec2<f32>({{add 512 .Middle}}.0, {{add 32 .Middle}}.0).xyxy;

fn halves(b: Bits) -> vec4<u32> {
  let low = b.low << 1u;
  let high = b.low >> 7u;
  let next = b.high >> 1u;
  return vec4<u32>(
    (low & 0x001e001eu) | (b.high & 0x00200020u) | 0x60006000u,
    (low & 0x01e001e0u) | (b.high & 0x02000200u) | 0x50005000u,
    (high & 0x001e001eu) | (next & 0x00200020u) | 0x60006000u,
    (high & 0x01e001e0u) | (next & 0x02000200u) | 0x50005000u);
}
{{- end}}

{{define "fives_row"}}
struct Row {
  low: vec4<u32>,
  high: u32,
}

fn load_row(row: u32, chunk: u32) -> Row {
  let at = row * {{.Chunks}}u + chunk;
  return Row(weights[at], highs[at]);
}
{{- end}}

{{define "fives_bits"}}Bits({{.Row}}.low[{{.E}}], {{.Row}}.high
{{- if eq .E 0}} << 5u{{else if eq .E 1}} << 3u{{else if eq .E 2}} >> 3u{{else}} >> 5u{{end}})
{{- end}}
