// gather with Lanes 64, Rank 4, Vec 4: workgroup [64 1 1], 0 bytes of workgroup memory
// binding 0: src
// binding 1: dst (written)
// param at 0: u32 n
// param at 4: u32 start
// param at 8: u32 size_0
// param at 12: u32 size_1
// param at 16: u32 size_2
// param at 20: u32 size_3
// param at 24: u32 stride_0
// param at 28: u32 stride_1
// param at 32: u32 stride_2
// param at 36: u32 stride_3

// dst[i0, i1, ...] = src at start and the sum of i_k * stride_k, which wraps where a stride goes back: an
// invocation gathers one element of 4 words.
struct Params {
  n: u32, // elements
  start: u32, // in src
  size_0: u32, // of dst
  size_1: u32, // of dst
  size_2: u32, // of dst
  size_3: u32, // of dst
  stride_0: u32, // in src
  stride_1: u32, // in src
  stride_2: u32, // in src
  stride_3: u32, // in src
}

@group(0) @binding(0) var<storage, read> src: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read_write> dst: array<vec4<u32>>;
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
  var at = params.start;
  at += (rest % params.size_3) * params.stride_3;
  rest /= params.size_3;
  at += (rest % params.size_2) * params.stride_2;
  rest /= params.size_2;
  at += (rest % params.size_1) * params.stride_1;
  rest /= params.size_1;
  at += (rest % params.size_0) * params.stride_0;
  rest /= params.size_0;
  dst[i] = src[at];
}
