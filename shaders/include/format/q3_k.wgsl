// 3-bit weights q: the low two bits of sixteen to a word, the third ones of 32 to a word, from the lowest up.
// 16 columns have a scale of 6 bits, and 256 a super, a half. A weight is (q - 4) * (scale - 32) * super.
{{define "format_bindings"}}
{{binding}} var<storage, read> weights: array<u32>; // [n, columns / 16]
{{binding}} var<storage, read> highs: array<u32>; // [n, columns / 32]
// [n, columns / 256, 3]: low four bits of groups 0 to 3 and 8 to 11, then of the others, then high two of all
{{binding}} var<storage, read> scales: array<u32>;
{{binding}} var<storage, read> supers: array<u32>; // [n, columns / 256], two to a word
{{- end}}

{{define "format_functions"}}
struct Bits {
  low: u32, // at bits 0 to 15
  high: u32, // at bits 0 to 7
}

fn load(row: u32, eight: u32) -> Bits {
  let at = row * ({{.Columns}} / 8u) + eight;
  return Bits(weights[at >> 1u] >> ((at & 1u) * 16u), highs[at >> 2u] >> ((at & 3u) * 8u));
}

// q under the exponent of 2^23, where the mantissa counts in ones. No bit is lost.
fn floats(b: Bits) -> Eight {
  let low = (vec4<u32>(b.low, b.low >> 2u, b.low >> 4u, b.low >> 6u) & vec4<u32>(3u)) |
    (vec4<u32>(b.high << 2u, b.high << 1u, b.high, b.high >> 1u) & vec4<u32>(4u));
  let high = (vec4<u32>(b.low >> 8u, b.low >> 10u, b.low >> 12u, b.low >> 14u) & vec4<u32>(3u)) |
    (vec4<u32>(b.high >> 2u, b.high >> 3u, b.high >> 4u, b.high >> 5u) & vec4<u32>(4u));
  return Eight(bitcast<vec4<f32>>(low | vec4<u32>(0x4b000000u)) - 8388612.0,
    bitcast<vec4<f32>>(high | vec4<u32>(0x4b000000u)) - 8388612.0);
}
{{- end}}

{{define "format_scale"}}
fn scale(row: u32, eight: u32) -> f32 {
  let at = row * ({{.Columns}} / 8u) + eight;
  let block = at >> 5u;
  let group = (at >> 1u) & 15u;
  let byte = (group & 3u) * 8u;
  let low = (scales[3u * block + ((group >> 2u) & 1u)] >> (byte + (group >> 3u) * 4u)) & 15u;
  let high = (scales[3u * block + 2u] >> (byte + (group >> 2u) * 2u)) & 3u;
  let pair = unpack2x16float(supers[block >> 1u]);
  return f32(i32(low | (high << 4u)) - 32) * select(pair.x, pair.y, (block & 1u) == 1u);
}
{{- end}}
