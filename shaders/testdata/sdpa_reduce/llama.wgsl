// kernel sdpa_reduce_d64_heads6_lanes64_maxsplits128, workgroup [64 1 1], 768 bytes of workgroup memory
// binding 0: part_o
// binding 1: part_ml
// binding 2: y (written)
// param at 0: u32 splits

// Puts the splits of sdpa_split together: y[h] = sum of exp(m_i - m) * o_i / sum of exp(m_i - m) * l_i, with m the largest m_i. A workgroup takes a head.
struct Params {
  splits: u32,
}

@group(0) @binding(0) var<storage, read> part_o: array<f32>; // [6, splits, 64]
@group(0) @binding(1) var<storage, read> part_ml: array<vec2<f32>>; // [6, splits]
@group(0) @binding(2) var<storage, read_write> y: array<f32>; // [1, 6, 64]
@group(0) @binding(3) var<uniform> params: Params;

var<workgroup> weights: array<f32, 128>;

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
  let head = flat_group(wid, groups);
  let splits = select(0u, params.splits, head < 6u);
  let first = head * params.splits;
  var largest = -1e30;
  for (var i = lane; i < splits; i += 64u) {
    largest = max(largest, part_ml[first + i].x);
  }
  largest = reduce_max(lane, largest);
  var sum = 0.0;
  for (var i = lane; i < splits; i += 64u) {
    let ml = part_ml[first + i];
    let weight = exp(ml.x - largest);
    weights[i] = weight;
    sum += weight * ml.y;
  }
  let inverse = 1.0 / max(reduce_sum(lane, sum), 1e-30); // its barriers also publish weights
  if (splits > 0u) {
    for (var d = lane; d < 64u; d += 64u) {
      var acc = 0.0;
      for (var i = 0u; i < splits; i++) {
        acc += weights[i] * part_o[(first + i) * 64u + d];
      }
      y[head * 64u + d] = acc * inverse;
    }
  }
}
