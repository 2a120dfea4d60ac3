// embedding_q4gsw with Lanes 64, ScaleRows 4: workgroup [64 1 1], 0 bytes of workgroup memory
// binding 0: nibbles
// binding 1: scales
// binding 2: indices
// binding 3: y (written)
// param at 0: u32 n
// param at 4: u32 words
// param at 8: u32 group_words
// param at 12: u32 vocabulary
// param at 16: u32 first
// param at 20: u32 rows

// y = rows of a 4-bit table, or of a range of its rows. An invocation turns one word, 8 columns of a row,
// into floats: (q - 8) * scale of the word's group. Scales lie as linear_q4gsw has them, 4 rows'
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
// [rows / 4, groups, 4]
@group(0) @binding(1) var<storage, read> scales: array<f32>;
@group(0) @binding(2) var<storage, read> indices: array<i32>;
@group(0) @binding(3) var<storage, read_write> y: array<vec4<f32>>;
@group(0) @binding(4) var<uniform> params: Params;

// The index of an invocation in a grid of one dimension that may have been folded into two.
fn flat_thread(gid: vec3<u32>, groups: vec3<u32>) -> u32 {
  return gid.x + gid.y * (groups.x * 64u);
}

@compute @workgroup_size(64)
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
  let place = (row / 4u * (params.words / params.group_words) +
    column / params.group_words) * 4u + row % 4u;
  let scale = scales[place];
  let low = vec4<u32>(word, word >> 4u, word >> 8u, word >> 12u) & vec4<u32>(15u);
  let high = vec4<u32>(word >> 16u, word >> 20u, word >> 24u, word >> 28u) & vec4<u32>(15u);
  y[2u * i] = (vec4<f32>(low) - 8.0) * scale;
  y[2u * i + 1u] = (vec4<f32>(high) - 8.0) * scale;
}
