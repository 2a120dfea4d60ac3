{{define "q4_unpack"}}
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
{{end}}
