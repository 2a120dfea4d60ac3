// sdpa_update_cache with HalfCache, Lanes 64: workgroup [64 1 1], 0 bytes of workgroup memory
// binding 0: k
// binding 1: v
// binding 2: k_cache (written)
// binding 3: v_cache (written)
// param at 0: u32 n
// param at 4: u32 first

// Appends the rows of k and v to their caches. An invocation takes four elements of each.
struct Params {
  n: u32, // vectors of 4 in all rows
  first: u32, // vector of the caches that the first goes to
}

@group(0) @binding(0) var<storage, read> k: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> v: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> k_cache: array<vec2<u32>>;
@group(0) @binding(3) var<storage, read_write> v_cache: array<vec2<u32>>;
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
  let key = k[i];
  let value = v[i];
  k_cache[params.first + i] = vec2<u32>(pack2x16float(key.xy), pack2x16float(key.zw));
  v_cache[params.first + i] = vec2<u32>(pack2x16float(value.xy), pack2x16float(value.zw));
}
