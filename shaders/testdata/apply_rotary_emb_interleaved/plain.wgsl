// apply_rotary_emb_interleaved with Lanes 64: workgroup [64 1 1], 0 bytes of workgroup memory
// binding 0: x
// binding 1: freqs
// binding 2: y (written)
// param at 0: u32 n
// param at 4: u32 period

// Turns each pair of neighbours of x by the pair (cosine, sine) of freqs, which is repeated for each batch.
// An invocation turns a pair.
struct Params {
  n: u32, // pairs of x
  period: u32, // pairs of freqs
}

@group(0) @binding(0) var<storage, read> x: array<vec2<f32>>;
@group(0) @binding(1) var<storage, read> freqs: array<vec2<f32>>;
@group(0) @binding(2) var<storage, read_write> y: array<vec2<f32>>;
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
  let v = x[i];
  let f = freqs[i % params.period];
  y[i] = vec2<f32>(v.x * f.x - v.y * f.y, v.x * f.y + v.y * f.x);
}
