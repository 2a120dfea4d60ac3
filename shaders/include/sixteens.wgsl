// A byte for each 16 columns of a row. Those of 4 rows are a word.
{{define "sixteens_binding"}}
// [n / 4, {{if .Wide}}{{.Chunks}}{{else}}columns / 16{{end}}]
{{binding}} var<storage, read> scales: array<{{if .Wide}}vec2<u32>{{else}}u32{{end}}>;
{{- end}}

// The byte of a row, for an eight of its columns, in the lowest bits.
{{define "sixteens_function"}}
fn sixteen(row: u32, eight: u32) -> u32 {
  return scales[(row >> 2u) * ({{.Columns}} / 16u) + eight / 2u] >> ((row & 3u) * 8u);
}
{{- end}}

// In a GEMV: the words of 32 columns of four rows.
{{define "sixteens_scales"}}
struct Scales {
  bytes: vec2<u32>,
  supers: {{template "supers_type" .}},
}

fn load_scales(row: u32, chunk: u32) -> Scales {
  return Scales(scales[row / 4u * {{.Chunks}}u + chunk], {{template "supers_load" .}});
}
{{- end}}
