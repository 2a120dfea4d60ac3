// The parts for super-block scales, which are f16 numbers. Integer scales are multiplied by them. A row has
// one for each 256 columns. If the format has integer zeros, it has another one, by which the zeros are
// multiplied. The super-block scales of 4 rows are stored together.
{{define "supers_binding"}}
// [n / 4, columns / 256, {{if defined "format_zero"}}2, {{end}}4]
{{binding}} var<storage, read> supers: array<{{if .Wide}}{{template "supers_type" .}}{{else}}u32{{end}}>;
{{- end}}

// Returns the super-block scale of a row for the scales (if Which is 0) or for the zeros (if Which is 1).
{{define "supers_function"}}
{{- $each := 1}}{{if defined "format_zero"}}{{$each = 2}}{{end}}
fn {{if .Which}}super_zero{{else}}super_scale{{end}}(row: u32, eight: u32) -> f32 {
  let at = ((row >> 2u) * ({{.Columns}} / 256u) + eight / 32u) * {{$each}}u{{if .Which}} + 1u{{end}};
  let pair = unpack2x16float(supers[at * 2u + ((row & 3u) >> 1u)]);
  return select(pair.x, pair.y, (row & 1u) == 1u);
}
{{- end}}

// For a GEMV: the super-block scales of four rows, as they are stored, and as floats.
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
