// layer_norm with Lanes 64, Vec 1: workgroup [64 1 1], 256 bytes of workgroup memory
// binding 0: x
// binding 1: weight
// binding 2: bias
// binding 3: y (written)
// param at 0: u32 rows
// param at 4: u32 width
// param at 8: f32 eps

// A workgroup normalises a row: y = (x - mean) * inverseSqrt(variance + eps) * weight + bias. The variance is
// summed from differences to the mean, which loses nothing where the mean is large.
struct Params {
  rows: u32,
  width: u32, // elements
  eps: f32,
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> weight: array<f32>;
@group(0) @binding(2) var<storage, read> bias: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
@group(0) @binding(4) var<uniform> params: Params;

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

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32) {
  let row = flat_group(wid, groups);
  // A row that is not there has no elements; its lanes still meet the others at the barriers.
  let width = select(0u, params.width / 1u, row < params.rows);
  let base = row * width;
  var sum = 0.0;
  for (var i = lane; i < width; i += 64u) {
    sum += x[base + i];
  }
  let mean = reduce_sum(lane, sum) / f32(params.width);
  var squares = 0.0;
  for (var i = lane; i < width; i += 64u) {
    let v = x[base + i] - mean;
    squares += v * v;
  }
  let scale = inverseSqrt(reduce_sum(lane, squares) / f32(params.width) + params.eps);
  for (var i = lane; i < width; i += 64u) {
    y[base + i] = (x[base + i] - mean) * scale * weight[i] + bias[i];
  }
}
