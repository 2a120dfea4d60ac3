// What the 4 bits of weights of IQ4_NL and IQ4_XS stand for: one of 16 levels, -127, -104, -83, -65, -49,
// -35, -22, -10, 1, 13, 25, 38, 53, 69, 89 and 113.
{{define "levels_floats"}}
// The levels of the low four bits of q. There is one with 128 added in each byte of the words; it is put
// under the exponent of 2^23, where the mantissa counts in ones.
fn levels(q: vec4<u32>) -> vec4<f32> {
  let second = (q & vec4<u32>(4u)) != vec4<u32>(0u);
  let words = select(
    select(vec4<u32>(0x3f2d1801u), vec4<u32>(0x766a5d4fu), second),
    select(vec4<u32>(0xa6998d81u), vec4<u32>(0xf1d9c5b5u), second),
    (q & vec4<u32>(8u)) != vec4<u32>(0u));
  let bytes = (words >> ((q & vec4<u32>(3u)) << vec4<u32>(3u))) & vec4<u32>(255u);
  return bitcast<vec4<f32>>(bytes | vec4<u32>(0x4b000000u)) - 8388736.0;
}

{{- if .GEMV}}

// To work a level out takes longer than to multiply it. They lie in 16 banks, and lanes that want the same
// one share the load. The table is as long as a byte says, for the compiler to see that no index is beyond
// it.
var<workgroup> table: array<f32, 256>;

fn floats(w: Bits) -> Eight {
  let even = w & 0x0f0f0f0fu;
  let odd = (w >> 4u) & 0x0f0f0f0fu;
  return Eight(
    vec4<f32>(table[extractBits(even, 0u, 8u)], table[extractBits(odd, 0u, 8u)],
      table[extractBits(even, 8u, 8u)], table[extractBits(odd, 8u, 8u)]),
    vec4<f32>(table[extractBits(even, 16u, 8u)], table[extractBits(odd, 16u, 8u)],
      table[extractBits(even, 24u, 8u)], table[extractBits(odd, 24u, 8u)]));
}
{{- else}}

fn floats(w: Bits) -> Eight {
  return Eight(levels(vec4<u32>(w, w >> 4u, w >> 8u, w >> 12u)),
    levels(vec4<u32>(w >> 16u, w >> 20u, w >> 24u, w >> 28u)));
}
{{- end}}
{{- end}}

// The workgroup fills its table.
{{define "levels_begin"}}
  for (var q = lane; q < 16u; q += {{.Lanes}}u) {
    table[q] = levels(vec4<u32>(q)).x;
  }
  workgroupBarrier();
{{- end}}
