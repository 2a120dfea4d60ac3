// y = rows of a 4-bit table, or of a range of its rows. An invocation turns one word, 8 columns of a row,
// into floats: (q - 8) * scale of the word's group. Scales lie as linear_q4gsw has them, {{.ScaleRows}} rows'
// together.
struct Params {
  n: u32, // words of all rows asked for
  words: u32, // of a row
  group_words: u32, // that share a scale
  vocabulary: u32,
  first: u32, // row of the table that the range begins with
  rows: u32, // of the range
}

@group(0) @binding(0) var<storage, read> nibbles: array<u32>; // [rows, words]
// [rows / {{.ScaleRows}}, groups, {{.ScaleRows}}]{{if .HalfScales}}, halves{{end}}
@group(0) @binding(1) var<storage, read> scales: array<{{if .HalfScales}}u32{{else}}f32{{end}}>;
@group(0) @binding(2) var<storage, read> indices: array<i32>;
@group(0) @binding(3) var<storage, read_write> y: array<vec4<f32>>;
@group(0) @binding(4) var<uniform> params: Params;

{{template "flat_thread" .}}
@compute @workgroup_size({{.Lanes}})
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  let i = flat_thread(gid, groups);
  if (i >= params.n) {
    return;
  }
  // An id that the table does not have must not read outside of it; the host is the one to report it.
  let id = u32(clamp(indices[i / params.words], 0, i32(params.vocabulary) - 1));
  if (id < params.first || id - params.first >= params.rows) {
    return; // another range has it
  }
  let row = id - params.first;
  let column = i % params.words;
  let word = nibbles[row * params.words + column];
  let place = (row / {{.ScaleRows}}u * (params.words / params.group_words) +
    column / params.group_words) * {{.ScaleRows}}u + row % {{.ScaleRows}}u;
{{- if .HalfScales}}
  let scale = unpack2x16float(scales[place / 2u])[place % 2u];
{{- else}}
  let scale = scales[place];
{{- end}}
  let low = vec4<u32>(word, word >> 4u, word >> 8u, word >> 12u) & vec4<u32>(15u);
  let high = vec4<u32>(word >> 16u, word >> 20u, word >> 24u, word >> 28u) & vec4<u32>(15u);
  y[2u * i] = (vec4<f32>(low) - 8.0) * scale;
  y[2u * i + 1u] = (vec4<f32>(high) - 8.0) * scale;
}
