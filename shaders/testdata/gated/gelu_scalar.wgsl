// gated with Act gelu_tanh, Lanes 64, Vec 1: workgroup [64 1 1], 0 bytes of workgroup memory
// binding 0: gate
// binding 1: up
// binding 2: y (written)
// param at 0: u32 n

// y = gelu_tanh(gate) * up. An invocation computes 1 elements.
struct Params {
  n: u32, // invocations
}

@group(0) @binding(0) var<storage, read> gate: array<f32>;
@group(0) @binding(1) var<storage, read> up: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
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
  let v = gate[i];
  y[i] = (0.5 * v * (2.0 - 2.0 / (exp(2.0 * clamp(0.79788456080286536 * (v + 0.044715 * v * v * v), f32(-20.0), f32(20.0))) + 1.0))) * up[i];
}
