// reduce_columns with Lanes 64, Op sum, Vec 1: workgroup [64 1 1], 0 bytes of workgroup memory
// binding 0: x
// binding 1: y (written)
// param at 0: u32 n
// param at 4: u32 rows
// param at 8: u32 width
// param at 12: f32 factor

// y[block, column] = factor * sum of x[block, row, column] over the rows. An invocation takes
// a column.
struct Params {
  n: u32, // invocations
  rows: u32, // of a block
  width: u32, // invocations of a row
  factor: f32,
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> params: Params;

fn join(u: f32, v: f32) -> f32 {
  return u + v;
}

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
  let first = i / params.width * params.rows * params.width + i % params.width;
  var joined = f32(0.0);
  for (var r = 0u; r < params.rows; r++) {
    joined = join(joined, x[first + r * params.width]);
  }
  y[i] = joined * params.factor;
}
