// The parts that formats with 4-bit floats share. A float has a sign, two bits of exponent and one of
// mantissa. An f16 number with these bits in the places for its sign, the low bits of its exponent and the
// highest bit of its mantissa is the float times 2^-14.
//
// A word has the floats of 8 columns, and each half of a word has four of them. Exponent and mantissa of the
// first are at bits 9 to 11 of the half; those of the others are 3, 6 and 9 bits lower. The signs are at bits
// 15, 12, 14 and 13. So one shift moves all bits of the second float to their places.
{{define "e2m1_halves"}}
const turn = vec4<f32>(0x1p15f); // twice the floats, because scales are half of theirs

fn halves(w: Bits) -> vec4<u32> {
  return vec4<u32>(
    w & 0x8e008e00u,
    (w << 3u) & 0x8e008e00u,
    ((w << 6u) & 0x0e000e00u) | ((w << 1u) & 0x80008000u),
    ((w << 9u) & 0x0e000e00u) | ((w << 2u) & 0x80008000u));
}
{{- end}}

{{define "e2m1_small"}}
// Converts the two f16 numbers in a word to floats.
fn small(h: u32) -> vec2<f32> {
{{- if .Flushes}}
  // The device flushes 2^-15 to 0. It is the only one of these numbers that is subnormal.
  let subnormal = vec2<bool>((h & 0x0e00u) == 0x0200u, (h & 0x0e000000u) == 0x02000000u);
  let size = select(abs(unpack2x16float(h)), vec2<f32>(0x1p-15f), subnormal);
  let negative = vec2<bool>((h & 0x8000u) != 0u, (h & 0x80000000u) != 0u);
  return select(size, -size, negative);
{{- else}}
  return unpack2x16float(h);
{{- end}}
}
{{- end}}
