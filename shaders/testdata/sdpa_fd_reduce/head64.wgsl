// sdpa_fd_reduce with HeadQuads 16, Lanes 64, MaxSplits 128: workgroup [64 1 1], 1792 bytes of workgroup memory
// binding 0: part_o
// binding 1: part_ml
// binding 2: y (written)
// param at 0: u32 q_heads
// param at 4: u32 splits

// Puts the splits of sdpa_fd_split together: y = sum of w o / sum of w l, with w = exp(m - the largest m). A
// workgroup takes a head.
struct Params {
  q_heads: u32,
  splits: u32,
}

@group(0) @binding(0) var<storage, read> part_o: array<vec4<f32>>; // [q_heads, splits, 16]
@group(0) @binding(1) var<storage, read> part_ml: array<vec2<f32>>; // [q_heads, splits]: max, sum
@group(0) @binding(2) var<storage, read_write> y: array<vec4<f32>>; // [q_heads, 16]
@group(0) @binding(3) var<uniform> params: Params;

// The index of a workgroup in a grid of one dimension that may have been folded into two.
fn flat_group(wid: vec3<u32>, groups: vec3<u32>) -> u32 {
  return wid.x + wid.y * groups.x;
}

var<workgroup> partial: array<f32, 64>;

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

var<workgroup> weight: array<f32, 128>;
var<workgroup> sums: array<vec4<f32>, 64>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32) {
  let head = flat_group(wid, groups);
  if (head >= params.q_heads) {
    return; // a grid that is larger than the live shape needs
  }
  let first = head * params.splits;
  var largest = -1e30;
  for (var i = lane; i < params.splits; i += 64u) {
    largest = max(largest, part_ml[first + i].x);
  }
  let m = reduce_max(lane, largest);
  var sum = 0.0;
  for (var i = lane; i < params.splits; i += 64u) {
    let ml = part_ml[first + i];
    let w = exp(ml.x - m);
    weight[i] = w;
    sum += w * ml.y;
  }
  let total = reduce_sum(lane, sum);
  let column = lane % 16u;
  let part = lane / 16u;
  var o = vec4<f32>(0.0);
  if (part < 4u) {
    for (var i = part; i < params.splits; i += 4u) {
      o += weight[i] * part_o[(first + i) * 16u + column];
    }
  }
  sums[lane] = o;
  workgroupBarrier();
  if (part > 0u) {
    return;
  }
  for (var p = 1u; p < 4u; p++) {
    o += sums[p * 16u + column];
  }
  y[head * 16u + column] = o / total;
}
