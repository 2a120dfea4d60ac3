// unary with Lanes 64, Op gelu, Vec 1: workgroup [64 1 1], 0 bytes of workgroup memory
// binding 0: x
// binding 1: y (written)
// param at 0: u32 n

// y = gelu(x). An invocation computes 1 elements.
struct Params {
  n: u32, // invocations
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> params: Params;

// Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26: off by 1.5e-7 at most.
fn erf(v: f32) -> f32 {
  let t = 1.0 / (1.0 + 0.3275911 * abs(v));
  let poly = t * (0.254829592 +
    t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
  return sign(v) * (1.0 - poly * exp(-v * v));
}

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
  y[i] = 0.5 * v * (1.0 + erf(v * 0.70710678118654752));
}
