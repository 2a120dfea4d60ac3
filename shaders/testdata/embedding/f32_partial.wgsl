// embedding with Format f32, Lanes 64, Partial: workgroup [64 1 1], 0 bytes of workgroup memory
// binding 0: weights
// binding 1: indices
// binding 2: y (written)
// param at 0: u32 n
// param at 4: u32 width
// param at 8: u32 vocabulary
// param at 12: u32 first
// param at 16: u32 rows

// y = rows of a table, or of a range of its rows.
// An invocation gives eight columns of a row.
struct Params {
  n: u32, // invocations: eights of all rows asked for
  width: u32, // of a row
  vocabulary: u32,
  first: u32, // row of the table that the range begins with
  rows: u32, // of the range
}

@group(0) @binding(0) var<storage, read> weights: array<f32>; // [n, columns]
@group(0) @binding(1) var<storage, read> indices: array<i32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(3) var<uniform> params: Params;

// The index of an invocation in a grid of one dimension that may have been folded into two.
fn flat_thread(gid: vec3<u32>, groups: vec3<u32>) -> u32 {
  return gid.x + gid.y * (groups.x * 64u);
}

// Eight weights of a row.
struct Eight {
  low: vec4<f32>, // columns 0 to 3
  high: vec4<f32>,
}

alias Bits = Eight;

fn load(row: u32, eight: u32) -> Bits {
  let at = row * params.width;
  let last = params.width - 1u;
  let c = 8u * eight;
  return Eight(
    vec4<f32>(weights[at + min(c, last)], weights[at + min(c + 1u, last)],
      weights[at + min(c + 2u, last)], weights[at + min(c + 3u, last)]),
    vec4<f32>(weights[at + min(c + 4u, last)], weights[at + min(c + 5u, last)],
      weights[at + min(c + 6u, last)], weights[at + min(c + 7u, last)]));
}

fn floats(b: Bits) -> Eight {
  return b;
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  let i = flat_thread(gid, groups);
  if (i >= params.n) {
    return;
  }
  let eights = (params.width + 7u) / 8u;
  // An id that the table does not have must not read outside of it; the host is the one to report it.
  let id = u32(clamp(indices[i / eights], 0, i32(params.vocabulary) - 1));
  if (id < params.first || id - params.first >= params.rows) {
    return; // another range has it
  }
  let row = id - params.first;
  let eight = i % eights;
  let w = floats(load(row, eight));
  let low = w.low;
  let high = w.high;
  let at = i / eights * params.width + 8u * eight;
  let left = params.width - 8u * eight;
  if (left > 0u) {
    y[at + 0u] = low[0];
  }
  if (left > 1u) {
    y[at + 1u] = low[1];
  }
  if (left > 2u) {
    y[at + 2u] = low[2];
  }
  if (left > 3u) {
    y[at + 3u] = low[3];
  }
  if (left > 4u) {
    y[at + 4u] = high[0];
  }
  if (left > 5u) {
    y[at + 5u] = high[1];
  }
  if (left > 6u) {
    y[at + 6u] = high[2];
  }
  if (left > 7u) {
    y[at + 7u] = high[3];
  }
}
