// permute with Lanes 64, Rank 2, Vec 1: workgroup [64 1 1], 0 bytes of workgroup memory
// binding 0: x
// binding 1: y (written)
// param at 0: u32 n
// param at 4: u32 size_0
// param at 8: u32 size_1
// param at 12: u32 stride_0
// param at 16: u32 stride_1

// y[i0, i1, ...] = x at the sum of i_k * stride_k: an invocation gathers one element of 1 words.
struct Params {
  n: u32, // elements
  size_0: u32, // of y
  size_1: u32, // of y
  stride_0: u32, // in x
  stride_1: u32, // in x
}

@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@group(0) @binding(2) var<uniform> params: Params;

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
  var rest = i;
  var at = 0u;
  at += (rest % params.size_1) * params.stride_1;
  rest /= params.size_1;
  at += (rest % params.size_0) * params.stride_0;
  rest /= params.size_0;
  y[i] = x[at];
}
