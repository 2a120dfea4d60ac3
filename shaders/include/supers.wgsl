// What scales of few bits count in: a half for 256 columns of a row, and where there are zeros a second one.
// Those of 4 rows lie together.
{{define "supers_binding"}}
// [n / 4, columns / 256, {{if defined "format_zero"}}2, {{end}}4]
{{binding}} var<storage, read> supers: array<{{if .Wide}}{{template "supers_type" .}}{{else}}u32{{end}}>;
{{- end}}

// That of a row's scale, Which 0, or zero, 1.
{{define "supers_function"}}
{{- $each := 1}}{{if defined "format_zero"}}{{$each = 2}}{{end}}
fn {{if .Which}}super_zero{{else}}super_scale{{end}}(row: u32, eight: u32) -> f32 {
  let at = ((row >> 2u) * ({{.Columns}} / 256u) + eight / 32u) * {{$each}}u{{if .Which}} + 1u{{end}};
  let pair = unpack2x16float(supers[at * 2u + ((row & 3u) >> 1u)]);
  return select(pair.x, pair.y, (row & 1u) == 1u);
}
{{- end}}

// In a GEMV: those of four rows, as they are stored, and as numbers.
{{define "supers_type"}}vec{{if defined "format_zero"}}4{{else}}2{{end}}<u32>{{end}}

{{define "supers_load"}}supers[row / 4u * {{div .Chunks 8}}u + chunk / 8u]{{end}}

{{define "supers_factors"}}
      let super_scale = vec4<f32>(unpack2x16float(scale_bits.supers.x),
        unpack2x16float(scale_bits.supers.y));
{{- if defined "format_zero"}}
      let super_zero = vec4<f32>(unpack2x16float(scale_bits.supers.z),
        unpack2x16float(scale_bits.supers.w));
{{- end}}
{{- end}}
