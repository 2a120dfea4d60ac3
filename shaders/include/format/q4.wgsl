// 4-bit weights q, eight to a word, column k of them at bits 4k; a group of 8 GroupEights columns has a
// scale, of which HalfScales says the type. A weight is (q - 8) * scale. Unpack is how q becomes a float.
{{define "format_bindings"}}
{{- template "nibbles_binding" .}}
{{template "row_scales_binding" (set . "Of" "scale")}}
{{- end}}

{{define "format_functions"}}
// A word holds eight weights q of 4 bits, column k of them at bits 4k. q4_even and q4_odd turn the even and
// the odd columns into floats zero + step * (q - 8), with the zeros and the step below: the cheapest form, of
// which users take the zero off once for many weights.
{{if eq .Unpack "integer"}}
// By conversion from integers, without any error.
const even_zero = 8.0;
const odd_zero = 8.0;
const odd_step = 1.0;

fn q4_even(w: u32) -> vec4<f32> {
  return vec4<f32>(vec4<u32>(w, w >> 8u, w >> 16u, w >> 24u) & vec4<u32>(15u));
}

fn q4_odd(w: u32) -> vec4<f32> {
  return vec4<f32>(vec4<u32>(w >> 4u, w >> 12u, w >> 20u, w >> 28u) & vec4<u32>(15u));
}
{{else if eq .Unpack "mantissa"}}
// One shift brings two columns to the top of a float's mantissa: the even one under the exponent of 256,
// where it counts in ones from bit 15 on, the odd one under that of 16, from bit 19 on. The floats are exact;
// what is rounded is the sum, in which a weight counts as 256 + q or 16 + q.
const even_zero = 264.0;
const odd_zero = 24.0;
const odd_step = 1.0;

fn q4_even(w: u32) -> vec4<f32> {
  return bitcast<vec4<f32>>((vec4<u32>(w << 15u, w << 7u, w >> 1u,
    w >> 9u) & vec4<u32>(0x00078000u)) | vec4<u32>(0x43800000u));
}

fn q4_odd(w: u32) -> vec4<f32> {
  return bitcast<vec4<f32>>((vec4<u32>(w << 15u, w << 7u, w >> 1u,
    w >> 9u) & vec4<u32>(0x00780000u)) | vec4<u32>(0x41800000u));
}
{{else if eq .Unpack "half"}}
// As two halves at a time: under the exponent of 1024 a half counts in ones, so a column at bits 0 to 3 makes
// 1024 + q, and one at bits 4 to 7 makes 1024 + 16 q. The floats are exact; what is rounded is the sum, in
// which a weight counts as 1024 + q.
const even_zero = 1032.0;
const odd_zero = 1152.0;
const odd_step = 16.0;

fn q4_even(w: u32) -> vec4<f32> {
  let a = unpack2x16float((w & 0x000f000fu) | 0x64006400u);
  let b = unpack2x16float(((w >> 8u) & 0x000f000fu) | 0x64006400u);
  return vec4<f32>(a.x, b.x, a.y, b.y);
}

fn q4_odd(w: u32) -> vec4<f32> {
  let a = unpack2x16float((w & 0x00f000f0u) | 0x64006400u);
  let b = unpack2x16float(((w >> 8u) & 0x00f000f0u) | 0x64006400u);
  return vec4<f32>(a.x, b.x, a.y, b.y);
}
{{end}}

{{- if not .GEMV}}

{{template "nibbles_load" .}}

fn floats(w: Bits) -> Eight {
  let even = q4_even(w) - even_zero;
  let odd = (q4_odd(w) - odd_zero) / odd_step;
  return Eight(vec4<f32>(even.x, odd.x, even.y, odd.y), vec4<f32>(even.z, odd.z, even.w, odd.w));
}
{{- end}}
{{- end}}

{{define "format_scale"}}
{{- if not .GEMV}}
{{- template "row_scales_function" (set . "Of" "scale")}}
{{- end}}
{{- end}}

// The GEMV has the even and the odd columns of x apart, and takes what q counts from off the sums once a
// chunk.
{{define "gemv_offsets"}}
{{- range $r := .Rows}}
  let w_row{{$r}} = row{{$r}} * {{$.Chunks}}u;
{{- end}}
{{- template "row_scales_offsets" (set . "Of" "scale")}}
{{- end}}

{{define "gemv_x"}}
{{- $b := .B}}
{{- range $e := .Eights}}
    let u{{$b}}_{{$e}} = x[x_row{{$b}} + chunk * {{mul 2 $.Eights}}u + {{mul 2 $e}}u];
    let v{{$b}}_{{$e}} = x[x_row{{$b}} + chunk * {{mul 2 $.Eights}}u + {{add (mul 2 $e) 1}}u];
    let even{{$b}}_{{$e}} = vec4<f32>(u{{$b}}_{{$e}}.xz, v{{$b}}_{{$e}}.xz);
    let odd{{$b}}_{{$e}} = vec4<f32>(u{{$b}}_{{$e}}.yw, v{{$b}}_{{$e}}.yw) / odd_step;
{{- end}}
    let zero{{$b}} = total((even{{$b}}_0{{range $e := $.Eights}}{{if $e}} +
      even{{$b}}_{{$e}}{{end}}{{end}}) * even_zero +
      (odd{{$b}}_0{{range $e := $.Eights}}{{if $e}} + odd{{$b}}_{{$e}}{{end}}{{end}}) * odd_zero);
{{- end}}

{{define "gemv_scales"}}
{{- template "row_scales" (set . "Of" "scale")}}
{{- end}}

{{define "gemv_load"}}
      let w{{.R}} = weights[w_row{{.R}} + chunk];
{{- end}}

{{define "gemv_floats"}}
{{- if eq .Eights 1}}
      let e{{.R}} = q4_even(w{{.R}});
      let o{{.R}} = q4_odd(w{{.R}});
{{- end}}
{{- end}}

{{define "gemv_dot"}}
{{- $t := printf "t%d_%d" .B .R}}
{{- if eq .Eights 4}}
      var {{$t}} = q4_even(w{{.R}}.x) * even{{.B}}_0;
      {{$t}} = fma(q4_odd(w{{.R}}.x), odd{{.B}}_0, {{$t}});
      {{$t}} = fma(q4_even(w{{.R}}.y), even{{.B}}_1, {{$t}});
      {{$t}} = fma(q4_odd(w{{.R}}.y), odd{{.B}}_1, {{$t}});
      {{$t}} = fma(q4_even(w{{.R}}.z), even{{.B}}_2, {{$t}});
      {{$t}} = fma(q4_odd(w{{.R}}.z), odd{{.B}}_2, {{$t}});
      {{$t}} = fma(q4_even(w{{.R}}.w), even{{.B}}_3, {{$t}});
      {{$t}} = fma(q4_odd(w{{.R}}.w), odd{{.B}}_3, {{$t}});
{{- else}}
      let {{$t}} = fma(o{{.R}}, odd{{.B}}_0, e{{.R}} * even{{.B}}_0);
{{- end}}
{{- $sum := printf "sum%d_%d" .B .R}}
      {{$sum}} = fma({{template "of_row" (set . "Of" "scale")}}, total({{$t}}) - zero{{.B}}, {{$sum}});
{{- end}}
