// The parts through which a kernel reads the weights of a matrix. A weight is float * scale + zero, where
// float is computed from the stored bits. The constant Format names a file in include/format, which defines:
//
//   format_bindings   the storage bindings for the arrays of the format
//   format_functions  alias Bits: the stored bits of a group of 8 weights in a row;
//                     load(row, eight) -> Bits: loads the group with index eight, columns 8 * eight to
//                     8 * eight + 7
//   format_floats     floats(bits) -> Eight: the floats, in the order of the columns; or else
//   format_halves     halves(bits) -> vec4<u32>: the floats as f16 numbers, two in a word: columns 0 and 4 in
//                     the first word, 1 and 5 in the second, ... The constant turn has a factor for each
//                     word; the product is the float. Only bits of the mantissa may be set: bit k has the
//                     value 2^(k - 24). If other bits are set too, the file also defines:
//   format_small      small(word) -> vec2<f32>: the two f16 numbers in a word, also on devices that flush
//   format_middle     a number to subtract from these products, if there is one
//   format_scale      scale(row, eight) -> f32: the scale of the group, if the format has scales
//   format_zero       zero(row, eight) -> f32: the zero of the group, if the format has zeros
//
// Flushes says whether the device replaces subnormal f16 numbers by 0. Columns is a WGSL expression for the
// number of columns of a row. GEMV says whether the kernel is a GEMV. A GEMV processes chunks of Eights
// groups of 8 columns, in four rows at a time. Count is then a WGSL expression for the number of rows. Wide
// says whether Eights is greater than 1. For wide kernels, the file of a format also defines:
//
//   wide_row      Row: the stored bits of a chunk of a row; load_row(row, chunk) -> Row
//   wide_bits     an expression for the Bits of group E in a Row; or else
//   wide_halves   an expression for the result of halves for group E, and wide_turn for its factors. A wide
//                 kernel then does not use format_functions and format_halves.
//   wide_scales   Scales: the stored scales and zeros of four rows; load_scales(row, chunk) -> Scales
//   wide_factors  the statements for gemv_factors
//
// If a format defines format_supers, then scale0, scale1, ... of a wide kernel are not multiplied by the
// super-block scale (super_scale), and zero0, zero1, ... are not multiplied by super_zero. The zeros are also
// too large by the constant zero_excess. gemv_dot corrects this once, in the sum over all groups.
//
// A format whose scales are all in arrays of row_scales.wgsl defines gemv_scales and gemv_factors instead of
// wide_scales and wide_factors. They work for any value of Eights.
{{define "format"}}
{{- $own := and .Wide (defined "wide_halves")}}
{{- if not (and .GEMV (defined "format_halves"))}}

// Eight weights of a row, as floats.
struct Eight {
  low: vec4<f32>, // columns 0 to 3
  high: vec4<f32>,
}
{{- end}}
{{- if not $own}}

{{template "format_functions" .}}
{{- end}}
{{- if defined "format_halves"}}
{{- if not $own}}

{{template "format_halves" .}}
{{- end}}
{{- if defined "format_small"}}

{{template "format_small" .}}
{{- else}}

// Converts the two f16 numbers in a word to floats. They are subnormal.
{{- if .Flushes}} The device flushes them to 0, so they get the exponent of 1 first.{{end}}
fn small(h: u32) -> vec2<f32> {
{{- if .Flushes}}
  return (unpack2x16float(h | 0x3c003c00u) - 1.0) * 0x1p-14f;
{{- else}}
  return unpack2x16float(h);
{{- end}}
}
{{- end}}
{{- if not .GEMV}}

fn floats(b: Bits) -> Eight {
  let h = halves(b);
  let first = small(h.x);
  let second = small(h.y);
  let third = small(h.z);
  let fourth = small(h.w);
  return Eight(vec4<f32>(first.x, second.x, third.x, fourth.x) * turn
    {{- if defined "format_middle"}} - {{template "format_middle" .}}{{end}},
    vec4<f32>(first.y, second.y, third.y, fourth.y) * turn
    {{- if defined "format_middle"}} - {{template "format_middle" .}}{{end}});
}
{{- end}}
{{- else}}

{{template "format_floats" .}}
{{- end}}
{{- if not .Wide}}
{{- if defined "format_scale"}}

{{template "format_scale" .}}
{{- end}}
{{- if defined "format_zero"}}

{{template "format_zero" .}}
{{- end}}
{{- end}}
{{- end}}

// An expression for the weights that belong to the floats Of. By is the prefix of the variables with scale
// and zero.
{{define "weights"}}
{{- if defined "format_zero"}}fma({{.Of}}, vec4<f32>({{.By}}scale), vec4<f32>({{.By}}zero))
{{- else}}{{.Of}}{{if defined "format_scale"}} * {{.By}}scale{{end}}{{end}}
{{- end}}

// The functions of a GEMV.
{{define "gemv"}}

// add_eight adds the products of 8 weights and 8 columns of x to a sum. A Sum consists of several partial
// sums, which total adds up.
{{- if defined "format_halves"}}
alias Sum = vec2<f32>;

fn add_eight(sum: Sum, w: vec4<u32>, low: vec4<f32>, high: vec4<f32>) -> Sum {
  var t = fma(small(w.x), vec2<f32>(low.x, high.x), sum);
  t = fma(small(w.y), vec2<f32>(low.y, high.y), t);
  t = fma(small(w.z), vec2<f32>(low.z, high.z), t);
  return fma(small(w.w), vec2<f32>(low.w, high.w), t);
}

fn total(sum: Sum) -> f32 {
  return sum.x + sum.y;
}
{{- else}}
alias Sum = vec4<f32>;

fn add_eight(sum: Sum, w: Eight, low: vec4<f32>, high: vec4<f32>) -> Sum {
  return fma(high, w.high, fma(low, w.low, sum));
}

fn total(sum: Sum) -> f32 {
  return (sum.x + sum.y) + (sum.z + sum.w);
}
{{- end}}

{{template "gemv_row" .}}
{{- if defined "format_scale"}}

{{template "gemv_scales" .}}
{{- end}}

// Loads the stored bits of a chunk of a row. Past the last row, it loads the last row.
fn load_near(row: u32, chunk: u32) -> Row {
  return load_row({{if .Ragged}}min(row, {{.Count}} - 1u){{else}}row{{end}}, chunk);
}
{{- end}}

// Statements that all lanes of a workgroup run together, before they load weights.
{{define "gemv_begin"}}{{end}}

// The type Row, for the stored bits of a chunk of a row, and the function that loads a Row.
{{define "gemv_row"}}
{{- if .Wide}}
{{- template "wide_row" .}}
{{- else}}
alias Row = Bits;

fn load_row(row: u32, chunk: u32) -> Row {
  return load(row, chunk);
}
{{- end}}
{{- end}}

// An expression for group E of 8 weights in row R, in the form that add_eight needs.
{{define "gemv_eight"}}
{{- $row := set . "Row" (printf "row%d" .R)}}
{{- if and .Wide (defined "wide_halves")}}{{template "wide_halves" $row}}
{{- else if defined "format_halves"}}halves({{template "gemv_bits" $row}})
{{- else}}floats({{template "gemv_bits" $row}}){{end}}
{{- end}}

{{define "gemv_bits"}}
{{- if .Wide}}{{template "wide_bits" .}}{{else}}{{.Row}}{{end}}
{{- end}}

// The type Scales, for the stored scales (and zeros) of four rows for a chunk, and the function that loads a
// Scales.
{{define "gemv_scales"}}
{{- if .Wide}}
{{- template "wide_scales" .}}
{{- else}}
struct Scales {
  scale: vec4<f32>,
{{- if defined "format_zero"}}
  zero: vec4<f32>,
{{- end}}
}

fn load_scales(row: u32, chunk: u32) -> Scales {
  return Scales(
    vec4<f32>({{range $r := 4}}{{if $r}}, {{end}}scale(row + {{$r}}u, chunk){{end}})
{{- if defined "format_zero"}},
    vec4<f32>({{range $r := 4}}{{if $r}}, {{end}}zero(row + {{$r}}u, chunk){{end}})
{{- end}});
}
{{- end}}
{{- end}}

// Converts a Scales to floats: scale0, scale1, ... and zero0, zero1, ... for the Groups groups of columns in
// a chunk. Each is a vector for the four rows.
{{define "gemv_factors"}}
{{- if .Wide}}
{{- template "wide_factors" .}}
{{- else}}
      let scale0 = scale_bits.scale;
{{- if defined "format_zero"}}
      let zero0 = scale_bits.zero;
{{- end}}
{{- end}}
{{- end}}

// Loads a chunk of row B of x. It also computes the values (begin) with which the sums of each group of
// columns start. If the format has a format_middle, this value subtracts it for all weights of the group at
// once. A group's zero is multiplied by ones, the sum of x in the group. If the format has format_halves, x
// is multiplied by the factors turn here, once for all rows of weights.
{{define "gemv_x"}}
{{- $b := .B}}
{{- $x := "x"}}{{if defined "format_halves"}}{{$x = "plain"}}{{end}}
{{- range $q := mul 2 .Eights}}
{{- $of := printf "x_row%d" $b}}
{{- if $.HeadQuads}}
{{- $run := div $q $.Run}}{{$of = printf "shares%d" $run}}
{{- if eq (mul $run $.Run) $q}}
    let {{$of}} = shares_of((chunk * {{mul 2 $.Eights}}u + {{$q}}u) / {{$.HeadQuads}}u);
{{- end}}
{{- end}}
    let {{$x}}{{$b}}_{{$q}} = columns({{$of}}, chunk * {{mul 2 $.Eights}}u + {{$q}}u);
{{- end}}
{{- $per := div (mul 2 .Eights) .Groups}}
{{- range $g := .Groups}}
{{- $of := printf "%d_%d" $b $g}}
{{- if or (defined "format_middle") (defined "format_zero")}}
    let all{{$of}} = {{range $q := $per}}{{if $q}} + {{end}}{{$x}}{{$b}}_{{add (mul $g $per) $q}}{{end}};
    let ones{{$of}} = dot(all{{$of}}, vec4<f32>(1.0));
{{- end}}
{{- if defined "format_middle"}}
    let begin{{$of}} = Sum(-{{template "format_middle" $}} * ones{{$of}}, 0.0);
{{- else}}
    let begin{{$of}} = Sum();
{{- end}}
{{- end}}
{{- if defined "format_halves"}}
{{- range $q := mul 2 .Eights}}
    let x{{$b}}_{{$q}} = plain{{$b}}_{{$q}} *
      {{- if and $.Wide (defined "wide_turn")}} {{template "wide_turn" (set $ "E" (div $q 2))}}
      {{- else}} turn{{end}};
{{- end}}
{{- end}}
{{- if and .Wide (defined "format_supers") (defined "format_zero")}}
    let zeros{{$b}} = -zero_excess * ({{range $g := .Groups}}{{if $g}} + {{end}}ones{{$b}}_{{$g}}{{end}});
{{- end}}
{{- end}}

// Computes the weights of row R.
{{define "gemv_weights"}}
{{- range $e := .Eights}}
      let w{{$.R}}_{{$e}} = {{template "gemv_eight" (set $ "E" $e)}};
{{- end}}
{{- end}}

// Computes the dot product of the weights of row R and row B of x.
{{define "gemv_dot"}}
{{- $r := .R}}
{{- $b := .B}}
{{- $sum := printf "sum%d_%d" $b $r}}
{{- $zeros := printf "zeros%d_%d" $b $r}}
{{- $supers := and .Wide (defined "format_supers")}}
{{- if and $supers (defined "format_zero")}}
      var {{$zeros}} = zeros{{$b}};
{{- end}}
{{- $per := div .Eights .Groups}}
{{- range $g := .Groups}}
{{- $t := printf "t%d_%d_%d" $b $r $g}}
      var {{$t}} = begin{{$b}}_{{$g}};
{{- range $i := $per}}
{{- $e := add (mul $g $per) $i}}
      {{$t}} = add_eight({{$t}}, w{{$r}}_{{$e}}, x{{$b}}_{{mul 2 $e}}, x{{$b}}_{{add (mul 2 $e) 1}});
{{- end}}
{{- $of := printf "total(%s)" $t}}
{{- if defined "format_scale"}}{{$of = printf "%s * scale%d[%d]" $of $g $r}}{{end}}
{{- if $g}}
      {{$sum}} += {{$of}};
{{- else}}
      var {{$sum}} = {{$of}};
{{- end}}
{{- if defined "format_zero"}}
      {{if $supers}}{{$zeros}}{{else}}{{$sum}}{{end}} += ones{{$b}}_{{$g}} * zero{{$g}}[{{$r}}];
{{- end}}
{{- end}}
{{- if $supers}}
      {{$sum}} = {{$sum}} * super_scale[{{$r}}]
{{- if defined "format_zero"}} - {{$zeros}} * super_zero[{{$r}}]{{end}};
{{- end}}
{{- end}}
