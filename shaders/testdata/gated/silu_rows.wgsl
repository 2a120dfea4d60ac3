// gated with Act silu, Lanes 64, Vec 4, Width 16: workgroup [64 1 1], 0 bytes of workgroup memory
// binding 0: x
// binding 1: y (written)
// param at 0: u32 n

// y = silu(gate) * up. An invocation computes 4 elements.
// A row of x has one of gate, then one of up.
struct Params {
  n: u32, // invocations
}

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> y: array<vec4<f32>>;
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
  let at = i + i / 16u * 16u;
  let v = x[at];
  y[i] = (v / (1.0 + exp(-v))) * x[at + 16u];
}
