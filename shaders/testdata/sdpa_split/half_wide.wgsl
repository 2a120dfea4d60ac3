// kernel sdpa_split_half_d128_heads4_kvheads2_lanes64_perlane2, workgroup [64 1 1], 512 bytes of workgroup memory
// binding 0: q
// binding 1: k_cache
// binding 2: v_cache
// binding 3: part_o (written)
// binding 4: part_ml (written)
// param at 0: u32 context
// param at 4: u32 splits
// param at 8: u32 split_length
// param at 12: f32 scale

// One token's attention over a part of the positions: a workgroup takes a head and a split of split_length positions, 64 at a time. Lane t has position t of
// the 64 for the scores, then dims t, t + 64, ... of the output. It leaves the sum of exp(score - largest) * v, with largest and the
// sum of exponentials, for sdpa_reduce. A split behind the last position leaves zeros. Source: Dao et al., Flash-Decoding for long-context
// inference (2023).
struct Params {
  context: u32,
  splits: u32,
  split_length: u32,
  scale: f32,
}

@group(0) @binding(0) var<storage, read> q: array<vec4<f32>>; // [1, 4, 128]
@group(0) @binding(1) var<storage, read> k_cache: array<vec2<u32>>; // [C, 2, 128]
@group(0) @binding(2) var<storage, read> v_cache: array<u32>;
@group(0) @binding(3) var<storage, read_write> part_o: array<f32>; // [4, splits, 128]
@group(0) @binding(4) var<storage, read_write> part_ml: array<vec2<f32>>; // [4, splits]
@group(0) @binding(5) var<uniform> params: Params;

var<workgroup> weights: array<f32, 64>;

// The index of a workgroup in a grid of one dimension that may have been folded into two.
fn flat_group(wid: vec3<u32>, groups: vec3<u32>) -> u32 {
  return wid.x + wid.y * groups.x;
}

var<workgroup> partial: array<f32, 64>;

// The sum of v over the workgroup's lanes, for each lane. Every lane must call it.
fn reduce_sum(lane: u32, v: f32) -> f32 {
  partial[lane] = v;
  workgroupBarrier();
  for (var s = 32u; s > 0u; s >>= 1u) {
    if (lane < s) {
      partial[lane] += partial[lane + s];
    }
    workgroupBarrier();
  }
  let total = partial[0];
  workgroupBarrier();
  return total;
}

// The largest v over the workgroup's lanes, for each lane. Every lane must call it.
fn reduce_max(lane: u32, v: f32) -> f32 {
  partial[lane] = v;
  workgroupBarrier();
  for (var s = 32u; s > 0u; s >>= 1u) {
    if (lane < s) {
      partial[lane] = max(partial[lane], partial[lane + s]);
    }
    workgroupBarrier();
  }
  let largest = partial[0];
  workgroupBarrier();
  return largest;
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let id = flat_group(wid, groups);
  let head = id / params.splits;
  let split = id % params.splits;
  let there = head < 4u;
  let kv = head / 2u;
  let start = select(params.context, split * params.split_length, there);
  let end = min(params.context, start + params.split_length);
  var largest = -1e30;
  var sum = 0.0;
  var o0 = 0.0;
  var o1 = 0.0;
  for (var c0 = start; c0 < end; c0 += 64u) {
    let c = c0 + lane;
    var score = -1e30;
    if (c < end) {
      var dots = vec4<f32>();
      let row = (c * 2u + kv) * 32u;
      for (var d = 0u; d < 32u; d++) {
        let words = k_cache[row + d];
        dots += q[head * 32u + d] * vec4<f32>(unpack2x16float(words.x), unpack2x16float(words.y));
      }
      score = (dots.x + dots.y + dots.z + dots.w) * params.scale;
    }
    let m = max(largest, reduce_max(lane, score));
    var weight = 0.0;
    if (c < end) {
      weight = exp(score - m);
    }
    weights[lane] = weight;
    let shrink = exp(largest - m);
    sum = sum * shrink + reduce_sum(lane, weight);
    largest = m;
    o0 *= shrink;
    o1 *= shrink;
    for (var j = 0u; j < min(64u, end - c0); j++) {
      let base = ((c0 + j) * 2u + kv) * 128u + lane;
      if (lane + 0u < 128u) {
        let word = unpack2x16float(v_cache[(base + 0u) / 2u]);
        o0 += weights[j] * select(word.x, word.y, (base & 1u) == 1u);
      }
      if (lane + 64u < 128u) {
        let word = unpack2x16float(v_cache[(base + 64u) / 2u]);
        o1 += weights[j] * select(word.x, word.y, (base & 1u) == 1u);
      }
    }
    workgroupBarrier(); // before the next 64 overwrite weights
  }
  if (there) {
    if (lane + 0u < 128u) {
      part_o[id * 128u + lane + 0u] = o0;
    }
    if (lane + 64u < 128u) {
      part_o[id * 128u + lane + 64u] = o1;
    }
    if (lane == 0u) {
      part_ml[id] = vec2<f32>(largest, sum);
    }
  }
}
