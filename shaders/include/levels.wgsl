// The 4 bits of a weight of IQ4_NL or IQ4_XS select one of 16 levels: -127, -104, -83, -65, -49, -35, -22,
// -10, 1, 13, 25, 38, 53, 69, 89 and 113.
{{define "levels_floats"}}
// Returns the levels that the low four bits of each q select. The constants below have a level plus 128 in
// each byte. The byte becomes the mantissa of a float with the exponent of 2^23, where the lowest mantissa
// bit counts 1.
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

// A lookup table, because computing a level takes longer than multiplying by it. The 16 levels are in
// different memory banks, and lanes that read the same level share the load. The table has 256 entries, so
// that a compiler sees that an index of 8 bits is always inside.
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

// Fills the lookup table of the workgroup.
{{define "levels_begin"}}
  for (var q = lane; q < 16u; q += {{.Lanes}}u) {
    table[q] = levels(vec4<u32>(q)).x;
  }
  workgroupBarrier();
{{- end}}
