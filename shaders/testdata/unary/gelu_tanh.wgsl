// unary with Lanes 64, Op gelu_tanh, Vec 4: workgroup [64 1 1], 0 bytes of workgroup memory
// binding 0: x
// binding 1: y (written)
// param at 0: u32 n

// y = gelu_tanh(x). An invocation computes 4 elements.
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
  let v = x[i];
  y[i] = 0.5 * v * (2.0 - 2.0 / (exp(2.0 * clamp(0.79788456080286536 * (v + 0.044715 * v * v * v), vec4<f32>(-20.0), vec4<f32>(20.0))) + 1.0));
}
