// ceiling_copy with Lanes 256: workgroup [256 1 1], 0 bytes of workgroup memory
// binding 0: src
// binding 1: dst (written)
// param at 0: u32 n
// param at 4: u32 rounds

// Copies a working set of n elements of 16 bytes, n a power of two, as often as it takes: each invocation
// copies one element a round. What is measured is the rate at which memory of that size is read and written.
struct Params {
  n: u32, // elements
  rounds: u32,
}

@group(0) @binding(0) var<storage, read> src: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read_write> dst: array<vec4<u32>>;
@group(0) @binding(2) var<uniform> params: Params;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  let lanes = groups.x * 256u;
  for (var r = 0u; r < params.rounds; r++) {
    let i = (r * lanes + gid.x) & (params.n - 1u);
    dst[i] = src[i];
  }
}
