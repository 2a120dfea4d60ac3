// The parts for an array with a one-byte scale for each group of 8 * GroupEights columns of a row. The bytes
// of 4 rows form a word. The file of the format defines byte_scales_floats. It has the function scales_of,
// which converts four bytes to floats.
{{define "byte_scales_binding"}}
// [n / 4, {{if .Wide}}{{.Chunks}}{{else}}columns / {{mul 8 .GroupEights}}{{end}}]
{{binding}} var<storage, read> scales: array<{{template "byte_scales_type" .}}>;
{{- if .Factors}}
{{binding}} var<storage, read> factors: array<f32>; // [n / 4] by which the scales of four rows are multiplied
{{- end}}
{{- end}}

{{define "byte_scales_type"}}
{{- if and .Wide (eq .GroupEights 2)}}vec2<u32>{{else}}u32{{end}}
{{- end}}

// Returns the scale for a row and a group of 8 columns. The argument eight is the index of this group.
{{define "byte_scales_function"}}
{{template "byte_scales_floats" .}}

fn scale(row: u32, eight: u32) -> f32 {
  let word = scales[(row >> 2u) * ({{.Columns}} / {{mul 8 .GroupEights}}u) + eight / {{.GroupEights}}u];
  return scales_of(vec4<u32>((word >> ((row & 3u) * 8u)) & 255u)).x
    {{- if .Factors}} * factors[row >> 2u]{{end}};
}
{{- end}}

// For a GEMV whose chunks have 32 columns: the words of four rows, and their scales as floats.
{{define "byte_scales_wide"}}
{{template "byte_scales_floats" .}}

struct Scales {
  words: {{template "byte_scales_type" .}},
{{- if .Factors}}
  factor: f32,
{{- end}}
}

fn load_scales(row: u32, chunk: u32) -> Scales {
  return Scales(scales[row / 4u * {{.Chunks}}u + chunk]{{if .Factors}}, factors[row / 4u]{{end}});
}

fn scales_of_word(word: u32) -> vec4<f32> {
  return scales_of((vec4<u32>(word) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(255u));
}
{{- end}}

{{define "byte_scales_factors"}}
{{- if eq .GroupEights 2}}
      let scale0 = scales_of_word(scale_bits.words.x){{if .Factors}} * scale_bits.factor{{end}};
      let scale1 = scales_of_word(scale_bits.words.y){{if .Factors}} * scale_bits.factor{{end}};
{{- else}}
      let scale0 = scales_of_word(scale_bits.words){{if .Factors}} * scale_bits.factor{{end}};
{{- end}}
{{- end}}
