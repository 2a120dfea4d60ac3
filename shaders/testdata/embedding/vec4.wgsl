// embedding with Lanes 64, Vec 4: workgroup [64 1 1], 0 bytes of workgroup memory
// binding 0: table
// binding 1: indices
// binding 2: y (written)
// param at 0: u32 n
// param at 4: u32 width
// param at 8: u32 vocabulary

// y = rows of a table. An invocation copies 4 words.
struct Params {
  n: u32, // invocations
  width: u32, // invocations of a row
  vocabulary: u32,
}

@group(0) @binding(0) var<storage, read> table: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> indices: array<i32>;
@group(0) @binding(2) var<storage, read_write> y: array<vec4<u32>>;
@group(0) @binding(3) var<uniform> params: Params;

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
  let row = u32(clamp(indices[i / params.width], 0, i32(params.vocabulary) - 1));
  y[i] = table[row * params.width + i % params.width];
}
