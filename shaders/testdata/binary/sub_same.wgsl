// binary with Alpha, Lanes 64, Op sub, Vec 1: workgroup [64 1 1], 0 bytes of workgroup memory
// binding 0: a
// binding 1: b
// binding 2: y (written)
// param at 0: u32 n
// param at 4: f32 alpha

// y = sub of a and b. An invocation computes 1 elements.
struct Params {
  n: u32, // invocations
  alpha: f32, // factor of b
}

@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
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
  let ia = i;
  let ib = i;
  let u = a[ia];
  let v = b[ib];
  y[i] = u - params.alpha * v;
}
