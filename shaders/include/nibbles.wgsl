// The parts of formats of which four bits of a weight, q or its lowest, lie eight to a word, column k of them
// at bits 4k. A GEMV takes four words at a time where it has chunks of as many eights.
{{define "nibbles_binding"}}
{{- if .GEMV}}
// [n, {{.Chunks}}]
{{binding}} var<storage, read> weights: array<{{if .Wide}}vec4<u32>{{else}}u32{{end}}>;
{{- else}}
{{binding}} var<storage, read> weights: array<u32>; // [n, columns / 8]
{{- end}}
{{- end}}

{{define "nibbles_load"}}
alias Bits = u32;
{{- if not .Wide}}

fn load(row: u32, eight: u32) -> Bits {
  return weights[row * ({{.Columns}} / 8u) + eight];
}
{{- end}}
{{- end}}

// q, of which Middle is to be taken, as halves 256 + q and 16 + q, without any error: their mantissas count
// in ones from bits 2 and 6 on.
{{define "nibbles_halves"}}
const excess = vec2<f32>({{add 256 .Middle}}.0, {{add 16 .Middle}}.0).xyxy;

fn halves(w: Bits) -> vec4<u32> {
  let low = w << 2u;
  let high = w >> 6u;
  return vec4<u32>(
    (low & 0x003c003cu) | 0x5c005c00u,
    (low & 0x03c003c0u) | 0x4c004c00u,
    (high & 0x003c003cu) | 0x5c005c00u,
    (high & 0x03c003c0u) | 0x4c004c00u);
}
{{- end}}

{{define "nibbles_row"}}
alias Row = vec4<u32>;

fn load_row(row: u32, chunk: u32) -> Row {
  return weights[row * {{.Chunks}}u + chunk];
}
{{- end}}

{{define "nibbles_bits"}}{{.Row}}[{{.E}}]{{end}}
