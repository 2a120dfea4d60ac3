// kernel sdpa_pack_cache_lanes64, workgroup [64 1 1], 0 bytes of workgroup memory
// binding 0: src
// binding 1: cache (written)
// param at 0: u32 n
// param at 4: u32 start

// Writes rows to an f16 cache, two halves to a word. An invocation packs 4 elements.
struct Params {
  n: u32, // fours
  start: u32, // where in the cache, in fours
}

@group(0) @binding(0) var<storage, read> src: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> cache: array<vec2<u32>>;
@group(0) @binding(2) var<uniform> params: Params;

// The index of an invocation in a grid of one dimension that may have been folded into two.
fn flat_thread(gid: vec3<u32>, groups: vec3<u32>) -> u32 {
  return gid.x + gid.y * (groups.x * 64u);
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  let i = flat_thread(gid, groups);
  if (i < params.n) {
    cache[params.start + i] = vec2<u32>(pack2x16float(src[i].xy), pack2x16float(src[i].zw));
  }
}
