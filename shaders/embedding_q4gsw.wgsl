// y = rows of a 4-bit table. An invocation turns one word, 8 columns of a row, into floats: (q - 8) * scale of the word's group.
struct Params {
  n: u32, // words of all rows asked for
  words: u32, // of a row
  group_words: u32, // that share a scale
  vocabulary: u32,
}

@group(0) @binding(0) var<storage, read> nibbles: array<u32>; // [vocabulary, words]
@group(0) @binding(1) var<storage, read> scales: array<f32>; // [vocabulary, words / group_words]
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
  let column = i % params.words;
  // An id that the table does not have must not read outside of it; the host is the one to report it.
  let row = u32(clamp(indices[i / params.words], 0, i32(params.vocabulary) - 1));
  let word = nibbles[row * params.words + column];
  let scale = scales[row * (params.words / params.group_words) + column / params.group_words];
  let low = vec4<u32>(word, word >> 4u, word >> 8u, word >> 12u) & vec4<u32>(15u);
  let high = vec4<u32>(word >> 16u, word >> 20u, word >> 24u, word >> 28u) & vec4<u32>(15u);
  y[2u * i] = (vec4<f32>(low) - 8.0) * scale;
  y[2u * i + 1u] = (vec4<f32>(high) - 8.0) * scale;
}
