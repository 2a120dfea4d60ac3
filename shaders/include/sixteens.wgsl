// The parts for an array with one byte for each 16 columns of a row. The bytes of 4 rows form a word.
{{define "sixteens_binding"}}
// [n / 4, {{if .Wide}}{{.Chunks}}{{else}}columns / 16{{end}}]
{{binding}} var<storage, read> scales: array<{{if .Wide}}vec2<u32>{{else}}u32{{end}}>;
{{- end}}

// Returns a word whose lowest byte belongs to a row and a group of 8 columns. The argument eight is the index
// of this group.
{{define "sixteens_function"}}
fn sixteen(row: u32, eight: u32) -> u32 {
  return scales[(row >> 2u) * ({{.Columns}} / 16u) + eight / 2u] >> ((row & 3u) * 8u);
}
{{- end}}

// For a GEMV: two words with the bytes for 32 columns of four rows, and their super-block scales.
{{define "sixteens_scales"}}
struct Scales {
  bytes: vec2<u32>,
  supers: {{template "supers_type" .}},
}

fn load_scales(row: u32, chunk: u32) -> Scales {
  return Scales(scales[row / 4u * {{.Chunks}}u + chunk], {{template "supers_load" .}});
}
{{- end}}
