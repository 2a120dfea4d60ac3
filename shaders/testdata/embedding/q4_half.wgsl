// embedding/q4_half: Format q4, GroupEights 4, HalfScales, Lanes 64
// workgroup [64 1 1], 0 bytes of workgroup memory
// bindings: weights, scales, indices, y (written)
// params: u32 n, u32 width, u32 vocabulary, u32 first, u32 rows

// Looks up rows of a table, or of a range of its rows.
// An invocation computes 8 columns of a row.
struct Params {
  n: u32, // invocations: one for each 8 columns of all looked-up rows
  width: u32, // columns of a row
  vocabulary: u32,
  first: u32, // first row of the range
  rows: u32, // number of rows of the range
}

@group(0) @binding(0) var<storage, read> weights: array<u32>; // [n, columns / 8]

// [n / 4, groups, 4]
@group(0) @binding(1) var<storage, read> scales: array<u32>;
@group(0) @binding(2) var<storage, read> indices: array<i32>;
@group(0) @binding(3) var<storage, read_write> y: array<vec4<f32>>;
@group(0) @binding(4) var<uniform> params: Params;

// Returns the index of an invocation in a one-dimensional grid, which can be dispatched in two dimensions.
fn flat_thread(gid: vec3<u32>, groups: vec3<u32>) -> u32 {
  return gid.x + gid.y * (groups.x * 64u);
}

// Eight weights of a row, as floats.
struct Eight {
  low: vec4<f32>, // columns 0 to 3
  high: vec4<f32>,
}

alias Bits = u32;

fn load(row: u32, eight: u32) -> Bits {
  return weights[row * (params.width / 8u) + eight];
}

const turn = vec4<f32>(0x1p24f, 0x1p20f, 0x1p24f, 0x1p20f);

fn halves(w: Bits) -> vec4<u32> {
  let high = w >> 8u;
  return vec4<u32>(w & 0x000f000fu, w & 0x00f000f0u, high & 0x000f000fu, high & 0x00f000f0u);
}

// Converts the two f16 numbers in a word to floats. They are subnormal.
fn small(h: u32) -> vec2<f32> {
  return unpack2x16float(h);
}

fn floats(b: Bits) -> Eight {
  let h = halves(b);
  let first = small(h.x);
  let second = small(h.y);
  let third = small(h.z);
  let fourth = small(h.w);
  return Eight(vec4<f32>(first.x, second.x, third.x, fourth.x) * turn - 8.0,
    vec4<f32>(first.y, second.y, third.y, fourth.y) * turn - 8.0);
}

fn scale(row: u32, eight: u32) -> f32 {
  let groups = params.width / 32u;
  let group = eight / 4u;
  let pair = unpack2x16float(scales[((row >> 2u) * groups + group) * 2u + ((row & 3u) >> 1u)]);
  return select(pair.x, pair.y, (row & 1u) == 1u);
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  let i = flat_thread(gid, groups);
  if (i >= params.n) {
    return;
  }
  let eights = params.width / 8u;
  // An id that is not in the table must not read other memory. The host must check ids and report errors.
  let id = u32(clamp(indices[i / eights], 0, i32(params.vocabulary) - 1));
  if (id < params.first || id - params.first >= params.rows) {
    return; // another range has this row
  }
  let row = id - params.first;
  let eight = i % eights;
  let w = floats(load(row, eight));
  let its_scale = scale(row, eight);
  let low = w.low * its_scale;
  let high = w.high * its_scale;
  y[2u * i] = low;
  y[2u * i + 1u] = high;
}
