// apply_rotary_emb with Lanes 64, Vec 4: workgroup [64 1 1], 0 bytes of workgroup memory
// binding 0: x
// binding 1: cosine
// binding 2: sine
// binding 3: y (written)
// param at 0: u32 n
// param at 4: u32 position
// param at 8: u32 positions
// param at 12: u32 skip
// param at 16: u32 head

// Turns each pair (x[2j], x[2j+1]) of a head by the angle of its row and pair.
// An invocation turns 2 pairs.
struct Params {
  n: u32, // invocations
  position: u32, // invocations of one position: all its heads
  positions: u32, // that there are
  skip: u32, // the first of them that x has
  head: u32, // invocations of a head
}

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> cosine: array<vec2<f32>>; // [positions, pairs]
@group(0) @binding(2) var<storage, read> sine: array<vec2<f32>>;
@group(0) @binding(3) var<storage, read_write> y: array<vec4<f32>>;
@group(0) @binding(4) var<uniform> params: Params;

// The index of an invocation in a grid of one dimension that may have been folded into two.
fn flat_thread(gid: vec3<u32>, groups: vec3<u32>) -> u32 {
  return gid.x + gid.y * (groups.x * 64u);
}

fn element(e: u32) -> vec4<f32> {
  return x[e];
}

fn put(e: u32, v: vec4<f32>) {
  y[e] = v;
}

// The position of invocation i, of those that are turned.
fn position_of(i: u32) -> u32 {
  return (params.skip + i / params.position) % params.positions;
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  let i = flat_thread(gid, groups);
  if (i >= params.n) {
    return;
  }
  let angle = position_of(i) * params.head + i % params.head;
  let c = cosine[angle];
  let s = sine[angle];
  let v = element(i);
  put(i, vec4<f32>(v.x * c.x - v.y * s.x, v.x * s.x + v.y * c.x, v.z * c.y - v.w * s.y,
    v.z * s.y + v.w * c.y));
}
