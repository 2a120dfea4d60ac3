// What a kernel that reads a matrix knows of the format of its weights. The constant Format names the file in
// include/format that a kernel is expanded with. It defines
//
//   format_bindings   the arrays of the format, as storage bindings
//   format_functions  alias Bits, eight weights of a row as they are stored;
//                     load(row, eight) -> Bits, those of the eight columns from 8 eight on;
//                     floats(bits) -> Eight, in the order of the columns
//   format_scale      scale(row, eight) -> f32, where the weights have one
//   format_zero       zero(row, eight) -> f32, where the weights have one besides
//
// and a weight is floats * scale + zero. Columns is the number of columns of a row, as WGSL. GEMV says
// whether the kernel is a GEMV, which goes by chunks of Eights eights that share scale and zero: a format
// whose weights load or multiply faster in a way of its own redefines gemv_* parts, of which those here are
// for any format.
{{define "format"}}
// Eight weights of a row.
struct Eight {
  low: vec4<f32>, // columns 0 to 3
  high: vec4<f32>,
}

{{template "format_functions" .}}
{{- if defined "format_scale"}}

{{template "format_scale" .}}
{{- end}}
{{- if defined "format_zero"}}

{{template "format_zero" .}}
{{- end}}
{{- end}}

// Floats Of as weights, By the prefix of the variables that hold scale and zero.
{{define "weights"}}
{{- if defined "format_zero"}}fma({{.Of}}, vec4<f32>({{.By}}scale), vec4<f32>({{.By}}zero))
{{- else}}{{.Of}}{{if defined "format_scale"}} * {{.By}}scale{{end}}{{end}}
{{- end}}

// What the lanes of a workgroup that has work make together, before all else.
{{define "gemv_begin"}}{{end}}

// Before the loop over chunks: what does not change in it. Row r of the weights is row0, row1, ...
{{define "gemv_offsets"}}{{end}}

// In a chunk: the columns of row B of x.
{{define "gemv_x"}}
{{- $b := .B}}
{{- range $q := mul 2 .Eights}}
    let x{{$b}}_{{$q}} = columns(x_row{{$b}}, chunk * {{mul 2 $.Eights}}u + {{$q}}u);
{{- end}}
{{- if defined "format_zero"}}
    let ones{{$b}} = total(x{{$b}}_0{{range $q := mul 2 .Eights}}{{if $q}} + x{{$b}}_{{$q}}{{end}}{{end}});
{{- end}}
{{- end}}

// The scales, and zeros, of the rows, as vectors of 4 rows: scales0, scales1, ...
{{define "gemv_scales"}}
{{- range $i := div .Rows 4}}
{{- $r := mul 4 $i}}
{{- if defined "format_scale"}}
    let scales{{$i}} = vec4<f32>({{range $j := 4}}{{if $j}},
      {{end}}scale(row{{add $r $j}}, chunk * {{$.Eights}}u){{end}});
{{- end}}
{{- if defined "format_zero"}}
    let zeros{{$i}} = vec4<f32>({{range $j := 4}}{{if $j}},
      {{end}}zero(row{{add $r $j}}, chunk * {{$.Eights}}u){{end}});
{{- end}}
{{- end}}
{{- end}}

// The bits of row R.
{{define "gemv_load"}}
{{- range $e := .Eights}}
      let w{{$.R}}_{{$e}} = load(row{{$.R}}, chunk * {{$.Eights}}u + {{$e}}u);
{{- end}}
{{- end}}

// The weights of row R as floats.
{{define "gemv_floats"}}
{{- range $e := .Eights}}
      let f{{$.R}}_{{$e}} = floats(w{{$.R}}_{{$e}});
{{- end}}
{{- end}}

// Into the sum of row R with row B of x.
{{define "gemv_dot"}}
{{- $t := printf "t%d_%d" .B .R}}
{{- $sum := printf "sum%d_%d" .B .R}}
      var {{$t}} = x{{.B}}_0 * f{{.R}}_0.low;
      {{$t}} = fma(x{{.B}}_1, f{{.R}}_0.high, {{$t}});
{{- range $e := .Eights}}
{{- if $e}}
      {{$t}} = fma(x{{$.B}}_{{mul 2 $e}}, f{{$.R}}_{{$e}}.low, {{$t}});
      {{$t}} = fma(x{{$.B}}_{{add (mul 2 $e) 1}}, f{{$.R}}_{{$e}}.high, {{$t}});
{{- end}}
{{- end}}
{{- if defined "format_scale"}}
      {{$sum}} = fma({{template "of_row" (set . "Of" "scale")}}, total({{$t}}), {{$sum}});
{{- else}}
      {{$sum}} += total({{$t}});
{{- end}}
{{- if defined "format_zero"}}
      {{$sum}} = fma({{template "of_row" (set . "Of" "zero")}}, ones{{.B}}, {{$sum}});
{{- end}}
{{- end}}

// The element of scales0, scales1, ... that is row R's.
{{define "of_row"}}{{.Of}}s{{div .R 4}}[{{sub .R (mul 4 (div .R 4))}}]{{end}}
