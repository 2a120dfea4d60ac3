// The parts for an array with one number, such as a scale, for each group of 8 * GroupEights columns of a
// row. Of is the name of such a number. The numbers of 4 rows are stored together, so that a GEMV loads them
// at once.
{{define "row_scales_binding"}}
// [n / 4, groups, 4]
{{binding}} var<storage, read> {{.Of}}s: array<{{if .GEMV}}{{template "row_scales_type" .}}
{{- else if .HalfScales}}u32{{else}}f32{{end}}>;
{{- end}}

// Returns the number for a row and a group of 8 columns. The argument eight is the index of this group.
{{define "row_scales_function"}}
fn {{.Of}}(row: u32, eight: u32) -> f32 {
  let groups = {{.Columns}} / {{mul 8 .GroupEights}}u;
  let group = eight / {{.GroupEights}}u;
{{- if .HalfScales}}
  let pair = unpack2x16float({{.Of}}s[((row >> 2u) * groups + group) * 2u + ((row & 3u) >> 1u)]);
  return select(pair.x, pair.y, (row & 1u) == 1u);
{{- else}}
  return {{.Of}}s[((row >> 2u) * groups + group) * 4u + (row & 3u)];
{{- end}}
}
{{- end}}

// For a GEMV: the type of the stored numbers of four rows, how they are loaded, and their values as floats.
{{define "row_scales_type"}}{{if .HalfScales}}vec2<u32>{{else}}vec4<f32>{{end}}{{end}}

{{define "row_scales_load"}}
{{- $per := div .GroupEights .Eights}}
{{- .Of}}s[row / 4u * {{div .Chunks $per}}u + chunk / {{$per}}u]
{{- end}}

{{define "row_scales_four"}}
{{- if .HalfScales}}vec4<f32>(unpack2x16float({{.In}}.x), unpack2x16float({{.In}}.y)){{else}}{{.In}}{{end}}
{{- end}}

// For the GEMV of a format whose scales (and zeros, if it has any) are all stored in such arrays.
{{define "row_scales_gemv"}}
struct Scales {
  scale: {{template "row_scales_type" .}},
{{- if defined "format_zero"}}
  zero: {{template "row_scales_type" .}},
{{- end}}
}

fn load_scales(row: u32, chunk: u32) -> Scales {
  return Scales({{template "row_scales_load" (set . "Of" "scale")}}
{{- if defined "format_zero"}},
    {{template "row_scales_load" (set . "Of" "zero")}}{{end}});
}
{{- end}}

{{define "row_scales_factors"}}
      let scale0 = {{template "row_scales_four" (set . "In" "scale_bits.scale")}};
{{- if defined "format_zero"}}
      let zero0 = {{template "row_scales_four" (set . "In" "scale_bits.zero")}};
{{- end}}
{{- end}}
