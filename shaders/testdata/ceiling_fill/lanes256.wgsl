// ceiling_fill with Lanes 256: workgroup [256 1 1], 0 bytes of workgroup memory
// binding 0: dst (written)
// param at 0: u32 n

// Fills memory with words that look like any: memory that was only ever cleared may be kept smaller than it
// is, and then is read faster than anything that a model has.
struct Params {
  n: u32, // elements of 16 bytes
}

@group(0) @binding(0) var<storage, read_write> dst: array<vec4<u32>>;
@group(0) @binding(1) var<uniform> params: Params;

fn mixed(n: vec4<u32>) -> vec4<u32> {
  var h = (n ^ (n >> vec4<u32>(16u))) * vec4<u32>(0x7feb352du);
  h = (h ^ (h >> vec4<u32>(15u))) * vec4<u32>(0x846ca68bu);
  return h ^ (h >> vec4<u32>(16u));
}

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  let lanes = groups.x * 256u;
  for (var i = gid.x; i < params.n; i += lanes) {
    dst[i] = mixed(vec4<u32>(4u * i) + vec4<u32>(0u, 1u, 2u, 3u));
  }
}
