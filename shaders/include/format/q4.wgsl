// 4-bit weights q, eight to a word, column k of them at bits 4k; a group of 8 GroupEights columns has a
// scale, of which HalfScales says the type. A weight is (q - 8) * scale.
{{define "format_bindings"}}
{{- template "nibbles_binding" .}}
{{template "row_scales_binding" (set . "Of" "scale")}}
{{- end}}

{{define "format_functions"}}
{{template "nibbles_halves" .}}
{{- if not .GEMV}}

{{template "nibbles_load" .}}

fn floats(w: Bits) -> Eight {
  let even = evens(w) - 264.0;
  let odd = odds(w) - 24.0;
  return Eight(vec4<f32>(even.x, odd.x, even.y, odd.y), vec4<f32>(even.z, odd.z, even.w, odd.w));
}
{{- end}}
{{- end}}

{{define "format_scale"}}
{{- if not .GEMV}}
{{- template "row_scales_function" (set . "Of" "scale")}}
{{- end}}
{{- end}}

// The GEMV has the even and the odd columns of x apart, and takes what the weights have too much, 256 + 8 and
// 16 + 8, off the sums once a chunk.
{{define "gemv_offsets"}}
{{- range $r := .Rows}}
  let w_row{{$r}} = row{{$r}} * {{$.Chunks}}u;
{{- end}}
{{- template "row_scales_offsets" (set . "Of" "scale")}}
{{- end}}

{{define "gemv_x"}}
{{- $b := .B}}
{{- range $e := .Eights}}
    let u{{$b}}_{{$e}} = columns(x_row{{$b}}, chunk * {{mul 2 $.Eights}}u + {{mul 2 $e}}u);
    let v{{$b}}_{{$e}} = columns(x_row{{$b}}, chunk * {{mul 2 $.Eights}}u + {{add (mul 2 $e) 1}}u);
    let even{{$b}}_{{$e}} = vec4<f32>(u{{$b}}_{{$e}}.xz, v{{$b}}_{{$e}}.xz);
    let odd{{$b}}_{{$e}} = vec4<f32>(u{{$b}}_{{$e}}.yw, v{{$b}}_{{$e}}.yw);
{{- end}}
    let zero{{$b}} = total((even{{$b}}_0{{range $e := $.Eights}}{{if $e}} +
      even{{$b}}_{{$e}}{{end}}{{end}}) * 264.0 +
      (odd{{$b}}_0{{range $e := $.Eights}}{{if $e}} + odd{{$b}}_{{$e}}{{end}}{{end}}) * 24.0);
{{- end}}

{{define "gemv_scales"}}
{{- template "row_scales" (set . "Of" "scale")}}
{{- end}}

{{define "gemv_load"}}
      let w{{.R}} = weights[w_row{{.R}} + chunk];
{{- end}}

{{define "gemv_floats"}}
{{- if eq .Eights 1}}
      let e{{.R}} = evens(w{{.R}});
      let o{{.R}} = odds(w{{.R}});
{{- end}}
{{- end}}

{{define "gemv_dot"}}
{{- $t := printf "t%d_%d" .B .R}}
{{- if eq .Eights 4}}
      var {{$t}} = evens(w{{.R}}.x) * even{{.B}}_0;
      {{$t}} = fma(odds(w{{.R}}.x), odd{{.B}}_0, {{$t}});
      {{$t}} = fma(evens(w{{.R}}.y), even{{.B}}_1, {{$t}});
      {{$t}} = fma(odds(w{{.R}}.y), odd{{.B}}_1, {{$t}});
      {{$t}} = fma(evens(w{{.R}}.z), even{{.B}}_2, {{$t}});
      {{$t}} = fma(odds(w{{.R}}.z), odd{{.B}}_2, {{$t}});
      {{$t}} = fma(evens(w{{.R}}.w), even{{.B}}_3, {{$t}});
      {{$t}} = fma(odds(w{{.R}}.w), odd{{.B}}_3, {{$t}});
{{- else}}
      let {{$t}} = fma(o{{.R}}, odd{{.B}}_0, e{{.R}} * even{{.B}}_0);
{{- end}}
{{- $sum := printf "sum%d_%d" .B .R}}
      {{$sum}} = fma({{template "of_row" (set . "Of" "scale")}}, total({{$t}}) - zero{{.B}}, {{$sum}});
{{- end}}
