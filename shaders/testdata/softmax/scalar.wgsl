// softmax with Lanes 64, Vec 1: workgroup [64 1 1], 256 bytes of workgroup memory
// binding 0: x
// binding 1: y (written)
// param at 0: u32 rows
// param at 4: u32 width

// A workgroup takes a row: y = exp(x - max) / sum(exp(x - max)). Each lane keeps the maximum of what it has
// seen and the sum of exponentials against it, so the row is read twice and not three times (Milakov and
// Gimelshein, Online normalizer calculation for softmax, 2018).
struct Params {
  rows: u32,
  width: u32, // elements
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> params: Params;

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
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32) {
  let row = flat_group(wid, groups);
  // A row that is not there has no elements; its lanes still meet the others at the barriers.
  let width = select(0u, params.width / 1u, row < params.rows);
  let base = row * width;
  var largest = -3.4028234e38;
  var sum = 0.0;
  for (var i = lane; i < width; i += 64u) {
    let v = x[base + i];
    let m = max(largest, v);
    sum = sum * exp(largest - m) + exp(v - m);
    largest = m;
  }
  let row_largest = reduce_max(lane, largest);
  let row_sum = reduce_sum(lane, sum * exp(largest - row_largest));
  for (var i = lane; i < width; i += 64u) {
    y[base + i] = exp(x[base + i] - row_largest) / row_sum;
  }
}
