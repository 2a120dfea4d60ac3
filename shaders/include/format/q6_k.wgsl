// 6-bit weights q: the low four bits of eight to a word, column k of them at bits 4k, the high two of sixteen
// to a word. 16 columns have a scale, a signed byte, and 256 a super, a half. A weight is (q - 32) * scale *
// super.
{{define "format_bindings"}}
{{binding}} var<storage, read> weights: array<u32>; // [n, columns / 8]
{{binding}} var<storage, read> highs: array<u32>; // [n, columns / 16]
{{binding}} var<storage, read> scales: array<u32>; // [n, columns / 16], four to a word
{{binding}} var<storage, read> supers: array<u32>; // [n, columns / 256], two to a word
{{- end}}

{{define "format_functions"}}
struct Bits {
  low: u32,
  high: u32,
}

fn load(row: u32, eight: u32) -> Bits {
  let at = row * ({{.Columns}} / 8u) + eight;
  return Bits(weights[at], highs[at >> 1u] >> ((at & 1u) * 16u));
}

// q under the exponent of 2^23, where the mantissa counts in ones. No bit is lost.
fn floats(b: Bits) -> Eight {
  let low = (vec4<u32>(b.low, b.low >> 4u, b.low >> 8u, b.low >> 12u) & vec4<u32>(15u)) |
    ((vec4<u32>(b.high << 4u, b.high << 2u, b.high, b.high >> 2u)) & vec4<u32>(48u));
  let high = (vec4<u32>(b.low >> 16u, b.low >> 20u, b.low >> 24u, b.low >> 28u) & vec4<u32>(15u)) |
    ((vec4<u32>(b.high >> 4u, b.high >> 6u, b.high >> 8u, b.high >> 10u)) & vec4<u32>(48u));
  return Eight(bitcast<vec4<f32>>(low | vec4<u32>(0x4b000000u)) - 8388640.0,
    bitcast<vec4<f32>>(high | vec4<u32>(0x4b000000u)) - 8388640.0);
}
{{- end}}

{{define "format_scale"}}
fn scale(row: u32, eight: u32) -> f32 {
  let group = (row * ({{.Columns}} / 8u) + eight) >> 1u;
  let byte = bitcast<i32>(scales[group >> 2u] << (24u - 8u * (group & 3u))) >> 24u;
  let pair = unpack2x16float(supers[group >> 5u]);
  return f32(byte) * select(pair.x, pair.y, (group & 16u) == 16u);
}
{{- end}}
