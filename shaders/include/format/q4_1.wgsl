// 4-bit weights q, eight to a word, column k of them at bits 4k; 32 columns have a scale and a zero, halves.
// A weight is q * scale + zero.
{{define "format_bindings"}}
{{- if .GEMV}}
// [n, {{.Chunks}}]
{{binding}} var<storage, read> weights: array<{{if eq .Eights 4}}vec4<u32>{{else}}u32{{end}}>;
{{- else}}
{{binding}} var<storage, read> weights: array<u32>; // [n, columns / 8]
{{- end}}
{{template "row_scales_binding" (set . "Of" "scale")}}
{{template "row_scales_binding" (set . "Of" "zero")}}
{{- end}}

{{define "format_functions"}}
alias Bits = u32;

// q under the exponents of 256 and of 16, where the mantissas count in ones from bits 15 and 19 on.
fn floats(w: Bits) -> Eight {
  let bits = vec4<u32>(w << 15u, w << 7u, w >> 1u, w >> 9u);
  let even = bitcast<vec4<f32>>((bits & vec4<u32>(0x00078000u)) | vec4<u32>(0x43800000u)) - 256.0;
  let odd = bitcast<vec4<f32>>((bits & vec4<u32>(0x00780000u)) | vec4<u32>(0x41800000u)) - 16.0;
  return Eight(vec4<f32>(even.x, odd.x, even.y, odd.y), vec4<f32>(even.z, odd.z, even.w, odd.w));
}
{{- if not .GEMV}}

fn load(row: u32, eight: u32) -> Bits {
  return weights[row * ({{.Columns}} / 8u) + eight];
}
{{- end}}
{{- end}}

{{define "format_scale"}}
{{- if not .GEMV}}
{{- template "row_scales_function" (set . "Of" "scale")}}
{{- end}}
{{- end}}

{{define "format_zero"}}
{{- if not .GEMV}}
{{- template "row_scales_function" (set . "Of" "zero")}}
{{- end}}
{{- end}}

{{define "gemv_offsets"}}
{{- template "row_scales_offsets" (set . "Of" "scale")}}
{{- template "row_scales_offsets" (set . "Of" "zero")}}
{{- end}}

{{define "gemv_scales"}}
{{- template "row_scales" (set . "Of" "scale")}}
{{- template "row_scales" (set . "Of" "zero")}}
{{- end}}

{{define "gemv_load"}}
      let b{{.R}} = weights[row{{.R}} * {{.Chunks}}u + chunk];
{{- if eq .Eights 4}}
{{- range $e := 4}}
      let w{{$.R}}_{{$e}} = b{{$.R}}[{{$e}}];
{{- end}}
{{- else}}
      let w{{.R}}_0 = b{{.R}};
{{- end}}
{{- end}}
