// The parts that formats with nibbles share. A nibble is a 4-bit weight q, or the low four bits of q. A word
// has the nibbles of 8 columns, and column k starts at bit 4k. A GEMV whose chunks have 4 groups of 8 columns
// loads four words at a time.
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

// Returns the nibbles as mantissas of f16 numbers, where they start at bit 0 or 4.
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
