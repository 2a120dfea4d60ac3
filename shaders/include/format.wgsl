// What a kernel that reads a matrix knows of the format of its weights. The constant Format names the file in
// include/format that a kernel is expanded with. It defines
//
//   format_bindings   the arrays of the format, as storage bindings
//   format_functions  alias Bits, eight weights of a row as they are stored;
//                     load(row, eight) -> Bits, those of the eight columns from 8 eight on
//   format_floats     floats(bits) -> Eight, in the order of the columns, or
//   format_halves     halves(bits) -> vec4<u32>, as words of two halves, the columns 0 and 4, 1 and 5, ...,
//                     which have none but bits of their mantissas: a bit k counts 2^(k - 24); and the
//                     constant turn, what these four are to be multiplied by
//   format_middle     what such weights then have too much, if they do
//   format_scale      scale(row, eight) -> f32, where the weights have one
//   format_zero       zero(row, eight) -> f32, where the weights have one besides
//
// and a weight is floats * scale + zero. Flushes says whether the device takes halves below the normal ones
// for 0. Columns is the number of columns of a row, as WGSL. GEMV says whether the kernel is a GEMV, which
// goes by chunks of Eights eights, and four rows at a time; Count is then the number of rows, as WGSL. Wide
// says whether these eights are several, as many as the format has best: how their bits are loaded is said by
//
//   wide_row      Row, what is stored of a chunk of a row, and load_row(row, chunk)
//   wide_bits     Bits of eight E of Row, or
//   wide_halves   what halves gives of it, and wide_turn its turn: then it needs no format_functions and
//                 no format_halves
//   wide_scales   Scales, what is stored of the scales and zeros of four rows, and load_scales(row, chunk)
//   wide_factors  what gemv_factors gives
//
// Where format_supers is defined, scale0, scale1, ... of wide ones are without what they count in,
// super_scale, and zero0, ... without super_zero and with too much by the constant zero_excess: the sum of
// the groups is seen to instead.
//
// In a GEMV of formats with row_scales.wgsl those are gemv_scales and gemv_factors, for any Eights.
{{define "format"}}
{{- $own := and .Wide (defined "wide_halves")}}
{{- if not (and .GEMV (defined "format_halves"))}}

// Eight weights of a row.
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

// Halves below the normal ones as floats.
{{- if .Flushes}} The device takes them for 0, but not their mantissas under the exponent of 1.{{end}}
fn small(h: u32) -> vec2<f32> {
{{- if .Flushes}}
  return (unpack2x16float(h | 0x3c003c00u) - 1.0) * 0x1p-14f;
{{- else}}
  return unpack2x16float(h);
{{- end}}
}
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

// Floats Of as weights, By the prefix of the variables that hold scale and zero.
{{define "weights"}}
{{- if defined "format_zero"}}fma({{.Of}}, vec4<f32>({{.By}}scale), vec4<f32>({{.By}}zero))
{{- else}}{{.Of}}{{if defined "format_scale"}} * {{.By}}scale{{end}}{{end}}
{{- end}}

// The functions of a GEMV.
{{define "gemv"}}

// What eight weights make with their columns of x is added to a sum, which is several until the end.
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

// What is stored of a row, or of the last one.
fn load_near(row: u32, chunk: u32) -> Row {
  return load_row({{if .Ragged}}min(row, {{.Count}} - 1u){{else}}row{{end}}, chunk);
}
{{- end}}

// What the lanes of a workgroup that has work make together, before all else.
{{define "gemv_begin"}}{{end}}

// Row, the bits of a chunk of a row, and how they are loaded.
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

// Eight E of row R, as it is multiplied.
{{define "gemv_eight"}}
{{- $row := set . "Row" (printf "row%d" .R)}}
{{- if and .Wide (defined "wide_halves")}}{{template "wide_halves" $row}}
{{- else if defined "format_halves"}}halves({{template "gemv_bits" $row}})
{{- else}}floats({{template "gemv_bits" $row}}){{end}}
{{- end}}

{{define "gemv_bits"}}
{{- if .Wide}}{{template "wide_bits" .}}{{else}}{{.Row}}{{end}}
{{- end}}

// Scales, what is stored of the scales, and zeros, of four rows for a chunk, and how it is loaded.
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

// The same as numbers of the four rows: scale0, scale1, ... and zero0, zero1, ..., of the Groups groups of
// columns that a chunk has.
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

// In a chunk: the columns of row B of x, and what its sums with a group of columns begin with: where weights
// have too much, that is taken off once for all. ones is what a group's zero is times. Of halves it is x that
// is turned, once for all rows.
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

// The weights of row R.
{{define "gemv_weights"}}
{{- range $e := .Eights}}
      let w{{$.R}}_{{$e}} = {{template "gemv_eight" (set $ "E" $e)}};
{{- end}}
{{- end}}

// Their sum with row B of x.
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
