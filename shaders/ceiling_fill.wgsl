// Fills memory with words that look random. A GPU may compress memory that has only been cleared, and would
// then read it faster than the data of any model.
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

@compute @workgroup_size({{.Lanes}})
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  let lanes = groups.x * {{.Lanes}}u;
  for (var i = gid.x; i < params.n; i += lanes) {
    dst[i] = mixed(vec4<u32>(4u * i) + vec4<u32>(0u, 1u, 2u, 3u));
  }
}
