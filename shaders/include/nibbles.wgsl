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

// As halves that begin at bits 0 and 4.
{{define "nibbles_halves"}}
const turn = vec4<f32>(0x1p24f, 0x1p20f, 0x1p24f, 0x1p20f);

fn halves(w: Bits) -> vec4<u32> {
  let high = w >> 8u;
  return vec4<u32>(w & 0x000f000fu, w & 0x00f000f0u, high & 0x000f000fu, high & 0x00f000f0u);
}
{{- end}}

{{define "nibbles_row"}}
alias Row = vec4<u32>;

fn load_row(row: u32, chunk: u32) -> Row {
  return weights[row * {{.Chunks}}u + chunk];
}
{{- end}}

{{define "nibbles_bits"}}{{.Row}}[{{.E}}]{{end}}
