// Scales and zeros of 6 bits for groups of 32 columns, as blocks of 256 columns of Q4_K and Q5_K begin: in
// the first word two halves, what scales and zeros count in; in the second and third the scales and the zeros
// of groups 0 to 3 in the low bits of the bytes; in the fourth the low four bits of those of groups 4 to 7,
// scales below zeros, of which the second and third have the high two.
{{define "sixes_binding"}}
{{binding}} var<storage, read> scales: array<vec4<u32>>; // [n, columns / 256]
{{- end}}

{{define "sixes_scale"}}
fn scale(row: u32, eight: u32) -> f32 {
  let at = row * ({{.Columns}} / 8u) + eight;
  let block = scales[at >> 5u];
  let shift = ((at >> 2u) & 3u) * 8u;
  let first = block.y >> shift;
  let later = ((block.w >> shift) & 15u) | ((first >> 2u) & 48u);
  return f32(select(first & 63u, later, (at & 16u) == 16u)) * unpack2x16float(block.x).x;
}
{{- end}}

{{define "sixes_zero"}}
fn zero(row: u32, eight: u32) -> f32 {
  let at = row * ({{.Columns}} / 8u) + eight;
  let block = scales[at >> 5u];
  let shift = ((at >> 2u) & 3u) * 8u;
  let first = block.z >> shift;
  let later = ((block.w >> (shift + 4u)) & 15u) | ((first >> 2u) & 48u);
  return f32(select(first & 63u, later, (at & 16u) == 16u)) * -unpack2x16float(block.x).y;
}
{{- end}}
