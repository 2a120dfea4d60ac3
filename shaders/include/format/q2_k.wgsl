// 2-bit weights q, sixteen to a word, from the lowest bits up; 16 columns have a byte with a scale in its low
// and a zero in its high four bits, and 256 two halves, what these count in. A weight is q * scale - zero.
{{define "format_bindings"}}
{{binding}} var<storage, read> weights: array<u32>; // [n, columns / 16]
{{binding}} var<storage, read> scales: array<u32>; // [n, columns / 64], four bytes to a word
{{binding}} var<storage, read> supers: array<u32>; // [n, columns / 256]
{{- end}}

{{define "format_functions"}}
alias Bits = u32; // at bits 0 to 15

fn load(row: u32, eight: u32) -> Bits {
  let at = row * ({{.Columns}} / 8u) + eight;
  return weights[at >> 1u] >> ((at & 1u) * 16u);
}

// q under the exponent of 2^23, where the mantissa counts in ones. No bit is lost.
fn floats(b: Bits) -> Eight {
  let low = vec4<u32>(b, b >> 2u, b >> 4u, b >> 6u) & vec4<u32>(3u);
  let high = vec4<u32>(b >> 8u, b >> 10u, b >> 12u, b >> 14u) & vec4<u32>(3u);
  return Eight(bitcast<vec4<f32>>(low | vec4<u32>(0x4b000000u)) - 8388608.0,
    bitcast<vec4<f32>>(high | vec4<u32>(0x4b000000u)) - 8388608.0);
}
{{- end}}

{{define "format_scale"}}
fn scale(row: u32, eight: u32) -> f32 {
  let at = row * ({{.Columns}} / 8u) + eight;
  let byte = scales[at >> 3u] >> (((at >> 1u) & 3u) * 8u);
  return f32(byte & 15u) * unpack2x16float(supers[at >> 5u]).x;
}
{{- end}}

{{define "format_zero"}}
fn zero(row: u32, eight: u32) -> f32 {
  let at = row * ({{.Columns}} / 8u) + eight;
  let byte = scales[at >> 3u] >> (((at >> 1u) & 3u) * 8u);
  return f32((byte >> 4u) & 15u) * -unpack2x16float(supers[at >> 5u]).y;
}
{{- end}}
