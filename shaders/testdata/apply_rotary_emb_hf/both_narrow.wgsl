// apply_rotary_emb_hf with Both, Lanes 64, Vec 1: workgroup [64 1 1], 0 bytes of workgroup memory
// binding 0: q
// binding 1: k
// binding 2: cosine
// binding 3: sine
// binding 4: yq (written)
// binding 5: yk (written)
// param at 0: u32 n
// param at 4: u32 position
// param at 8: u32 positions
// param at 12: u32 skip
// param at 16: u32 head
// param at 20: u32 q
// param at 24: u32 k_position
// param at 28: u32 half
// param at 32: u32 start

// Turns each pair (x[j], x[j + R/2]) of the first R elements of a head of q and k,
// and copies the rest. Tables hold a cosine and a sine for each of R columns of a position. An invocation has
// a pair.
struct Params {
  n: u32, // invocations
  position: u32, // invocations of one position of q: all its heads
  positions: u32, // that k has
  skip: u32, // the first of them that q has
  head: u32, // invocations of a head
  q: u32, // invocations of q; the others are of k
  k_position: u32, // invocations of one position of k
  half: u32, // invocations of a head that turn
  start: u32, // the first position's row of the tables
}

@group(0) @binding(0) var<storage, read> q: array<f32>;
@group(0) @binding(1) var<storage, read> k: array<f32>;
@group(0) @binding(2) var<storage, read> cosine: array<f32>; // [positions, R]
@group(0) @binding(3) var<storage, read> sine: array<f32>;
@group(0) @binding(4) var<storage, read_write> yq: array<f32>;
@group(0) @binding(5) var<storage, read_write> yk: array<f32>;
@group(0) @binding(6) var<uniform> params: Params;

// The index of an invocation in a grid of one dimension that may have been folded into two.
fn flat_thread(gid: vec3<u32>, groups: vec3<u32>) -> u32 {
  return gid.x + gid.y * (groups.x * 64u);
}

// Element e of q and k, one behind the other.
fn element(e: u32) -> f32 {
  let of_q = params.q * 2u;
  if (e < of_q) {
    return q[e];
  }
  return k[e - of_q];
}

fn put(e: u32, v: f32) {
  let of_q = params.q * 2u;
  if (e < of_q) {
    yq[e] = v;
  } else {
    yk[e - of_q] = v;
  }
}

// The position of invocation i, of those that are turned.
fn position_of(i: u32) -> u32 {
  if (i >= params.q) {
    return (i - params.q) / params.k_position % params.positions;
  }
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
