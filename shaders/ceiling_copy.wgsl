// Copies a working set of n elements of 16 bytes several times. n is a power of two. Each invocation copies
// one element in each round. This measures the rate at which memory of this size is read and written.
struct Params {
  n: u32, // elements
  rounds: u32,
}

@group(0) @binding(0) var<storage, read> src: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read_write> dst: array<vec4<u32>>;
@group(0) @binding(2) var<uniform> params: Params;

@compute @workgroup_size({{.Lanes}})
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  let lanes = groups.x * {{.Lanes}}u;
  for (var r = 0u; r < params.rounds; r++) {
    let i = (r * lanes + gid.x) & (params.n - 1u);
    dst[i] = src[i];
  }
}
