// An array of a number for each group of 8 GroupEights columns of a row, {{.Of}}s for "Of". Those of 4
// rows, 8 where they are halves, lie together, so that a lane loads those of its rows at once: [rows / 4,
// groups, 4].
{{define "row_scales_binding"}}
{{- if .GEMV}}
{{- $rows := 4}}{{if .HalfScales}}{{$rows = 8}}{{end}}
// [n / {{$rows}}, {{div .Chunks (div .GroupEights .Eights)}}, {{$rows}}]
{{binding}} var<storage, read> {{.Of}}s: array<{{if .HalfScales}}vec4<u32>{{else}}vec4<f32>{{end}}>;
{{- else}}
// [n / {{if .HalfScales}}8, groups, 8{{else}}4, groups, 4{{end}}]
{{binding}} var<storage, read> {{.Of}}s: array<{{if .HalfScales}}u32{{else}}f32{{end}}>;
{{- end}}
{{- end}}

// The number of one row, for an eight of its columns.
{{define "row_scales_function"}}
fn {{.Of}}(row: u32, eight: u32) -> f32 {
  let groups = {{.Columns}} / {{mul 8 .GroupEights}}u;
  let group = eight / {{.GroupEights}}u;
{{- if .HalfScales}}
  let pair = unpack2x16float({{.Of}}s[((row >> 3u) * groups + group) * 4u + ((row & 7u) >> 1u)]);
  return select(pair.x, pair.y, (row & 1u) == 1u);
{{- else}}
  return {{.Of}}s[((row >> 2u) * groups + group) * 4u + (row & 3u)];
{{- end}}
}
{{- end}}

// In a GEMV: where the numbers of its rows begin, and those of a chunk as {{.Of}}s0, a vector of 4 rows,
// and so on.
{{define "row_scales_offsets"}}
{{- $loads := div .Rows 4}}{{if .HalfScales}}{{$loads = div (add .Rows 4) 8}}{{end}}
{{- range $i := $loads}}
  let {{$.Of}}_row{{$i}} = (first_row / {{if $.HalfScales}}8{{else}}4{{end}}u + {{$i}}u) *
    {{div $.Chunks (div $.GroupEights $.Eights)}}u;
{{- end}}
{{- end}}

{{define "row_scales"}}
{{- $loads := div .Rows 4}}{{if .HalfScales}}{{$loads = div (add .Rows 4) 8}}{{end}}
    let {{.Of}}_group = chunk / {{div .GroupEights .Eights}}u;
{{- range $i := $loads}}
{{- if $.HalfScales}}
    let {{$.Of}}_word{{$i}} = {{$.Of}}s[{{$.Of}}_row{{$i}} + {{$.Of}}_group];
{{- else}}
    let {{$.Of}}s{{$i}} = {{$.Of}}s[{{$.Of}}_row{{$i}} + {{$.Of}}_group];
{{- end}}
{{- end}}
{{- if .HalfScales}}
{{- if eq .Rows 4}}
    let {{.Of}}_pair = select({{.Of}}_word0.xy, {{.Of}}_word0.zw, (first_row & 4u) == 4u);
    let {{.Of}}s0 = vec4<f32>(unpack2x16float({{.Of}}_pair.x), unpack2x16float({{.Of}}_pair.y));
{{- else}}
{{- range $i := $loads}}
    let {{$.Of}}s{{mul $i 2}} = vec4<f32>(unpack2x16float({{$.Of}}_word{{$i}}.x),
      unpack2x16float({{$.Of}}_word{{$i}}.y));
    let {{$.Of}}s{{add (mul $i 2) 1}} = vec4<f32>(unpack2x16float({{$.Of}}_word{{$i}}.z),
      unpack2x16float({{$.Of}}_word{{$i}}.w));
{{- end}}
{{- end}}
{{- end}}
{{- end}}
