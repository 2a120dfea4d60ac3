// linear_sums with Bias, Lanes 64, Residual, Vec 4: workgroup [64 1 1], 0 bytes of workgroup memory
// binding 0: sums
// binding 1: bias
// binding 2: residual
// binding 3: y (written)
// param at 0: u32 n
// param at 4: u32 width
// param at 8: u32 splits
// param at 12: u32 residual_rows

// y = the sum of some splits of a product + bias + residual. An invocation has
// 4 columns of a row.
struct Params {
  n: u32, // invocations
  width: u32, // of a row
  splits: u32,
  residual_rows: u32, // as many as y has, or one that serves all
}

@group(0) @binding(0) var<storage, read> sums: array<vec4<f32>>; // [splits, rows, width]
@group(0) @binding(1) var<storage, read> bias: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> residual: array<vec4<f32>>;
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
  var sum = sums[i];
  for (var split = 1u; split < params.splits; split++) {
    sum += sums[split * params.n + i];
  }
  y[i] = sum + bias[i % params.width] + residual[min(i / params.width, params.residual_rows - 1u) * params.width +
    i % params.width];
}
