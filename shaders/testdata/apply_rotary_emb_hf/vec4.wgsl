// apply_rotary_emb_hf/vec4: Lanes 64, Vec 4
// workgroup [64 1 1], 0 bytes of workgroup memory
// bindings: x, cosine, sine, y (written)
// params: u32 n, u32 position, u32 positions, u32 skip, u32 head, u32 half, u32 start

// Rotates each pair (x[j], x[j + R/2]) of the first R elements of a head,
// and copies the other elements. The tables have a cosine and a sine for each of R columns of each position.
// An invocation processes 4 pairs.
struct Params {
  n: u32, // invocations
  position: u32, // invocations for all heads of one position
  positions: u32, // number of positions
  skip: u32, // index of the first position in x
  head: u32, // invocations for a head
  half: u32, // invocations of a head that rotate a pair
  start: u32, // row of the tables for the first position
}

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> cosine: array<vec4<f32>>; // [positions, R]
@group(0) @binding(2) var<storage, read> sine: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> y: array<vec4<f32>>;
@group(0) @binding(4) var<uniform> params: Params;

// Returns the index of an invocation in a one-dimensional grid, which can be dispatched in two dimensions.
fn flat_thread(gid: vec3<u32>, groups: vec3<u32>) -> u32 {
  return gid.x + gid.y * (groups.x * 64u);
}

fn element(e: u32) -> vec4<f32> {
  return x[e];
}

fn put(e: u32, v: vec4<f32>) {
  y[e] = v;
}

// Returns the index of the position that invocation i processes. The first position of the step has index 0.
fn position_of(i: u32) -> u32 {
  return (params.skip + i / params.position) % params.positions;
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  let i = flat_thread(gid, groups);
  if (i >= params.n) {
    return;
  }
  let j = i % params.head;
  let first = i / params.head * 2u * params.head;
  if (j >= params.half) {
    put(first + 2u * j, element(first + 2u * j));
    put(first + 2u * j + 1u, element(first + 2u * j + 1u));
    return;
  }
  let low = first + j;
  let high = low + params.half;
  let angle = (params.start + position_of(i)) * 2u * params.half + j;
  let a = element(low);
  let b = element(high);
  put(low, a * cosine[angle] - b * sine[angle]);
  put(high, b * cosine[angle + params.half] + a * sine[angle + params.half]);
}
