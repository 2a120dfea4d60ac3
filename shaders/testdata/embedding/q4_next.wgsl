// embedding with Each 8, Format q4, GroupEights 4, HalfScales, Lanes 64, Scaled: workgroup [64 1 1], 512 bytes of workgroup memory
// binding 0: weights
// binding 1: scales
// binding 2: indices
// binding 3: factor
// binding 4: y (written)
// binding 5: next_weight
// binding 6: weighted (written)
// binding 7: next_squares (written)
// param at 0: u32 n
// param at 4: u32 width
// param at 8: u32 vocabulary
// param at 12: u32 first
// param at 16: u32 rows

// y = rows of a table, or of a range of its rows, by a factor.
// An invocation gives eight columns of a row. Of one row it
// also does what each element takes of a norm behind.
struct Params {
  n: u32, // invocations: eights of all rows asked for
  width: u32, // of a row
  vocabulary: u32,
  first: u32, // row of the table that the range begins with
  rows: u32, // of the range
}

@group(0) @binding(0) var<storage, read> weights: array<u32>; // [n, columns / 8]

// [n / 4, groups, 4]
@group(0) @binding(1) var<storage, read> scales: array<u32>;
@group(0) @binding(2) var<storage, read> indices: array<i32>;
@group(0) @binding(3) var<storage, read> factor: array<f32>; // of all that is given
@group(0) @binding(4) var<storage, read_write> y: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read> next_weight: array<vec4<f32>>; // of a norm of y
@group(0) @binding(6) var<storage, read_write> weighted: array<vec4<f32>>; // y by these
@group(0) @binding(7) var<storage, read_write> next_squares: array<f32>; // sums of those of y, of 8 columns
@group(0) @binding(8) var<uniform> params: Params;

// The index of an invocation in a grid of one dimension that may have been folded into two.
fn flat_thread(gid: vec3<u32>, groups: vec3<u32>) -> u32 {
  return gid.x + gid.y * (groups.x * 64u);
}

// Eight weights of a row.
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

// Halves below the normal ones as floats.
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

fn spread(four: u32, chunks: u32) -> u32 {
  return four % 8u * chunks + four / 8u;
}

var<workgroup> squares: array<f32, 128>; // of four columns each

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32) {
  let thread = flat_thread(gid, groups);
  let i = min(thread, params.n - 1u); // those behind the row wait for the others
  let eights = params.width / 8u;
  // An id that the table does not have must not read outside of it; the host is the one to report it.
  let id = u32(clamp(indices[i / eights], 0, i32(params.vocabulary) - 1));
  let row = id - params.first;
  let eight = i % eights;
  let w = floats(load(row, eight));
  let its_scale = scale(row, eight);
  let low = factor[0] * w.low * its_scale;
  let high = factor[0] * w.high * its_scale;
  y[2u * i] = low;
  y[2u * i + 1u] = high;
  weighted[spread(2u * i, params.width / 32u)] = low * next_weight[2u * i];
  weighted[spread(2u * i + 1u, params.width / 32u)] = high * next_weight[2u * i + 1u];
  squares[2u * lane] = select(0.0, dot(low, low), thread < params.n);
  squares[2u * lane + 1u] = select(0.0, dot(high, high), thread < params.n);
  workgroupBarrier();
  let first = (thread - lane) / 64u * 64u; // of the workgroup's sums
  for (var s = lane; s < 64u && (first + s) * 8u < params.width; s += 64u) {
    var sum = 0.0;
    for (var four = 0u; four < 2u; four++) {
      sum += squares[s * 2u + four];
    }
    next_squares[first + s] = sum;
  }
}
