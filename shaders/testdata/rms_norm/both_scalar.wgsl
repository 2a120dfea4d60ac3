// rms_norm with Both, Lanes 64, Vec 1: workgroup [64 1 1], 256 bytes of workgroup memory
// binding 0: x
// binding 1: weight
// binding 2: y (written)
// binding 3: other
// binding 4: other_weight
// binding 5: other_y (written)
// param at 0: u32 rows
// param at 4: u32 width
// param at 8: f32 eps
// param at 12: u32 first

// A workgroup normalises a row: y = x * inverseSqrt(mean(x^2) + eps) * weight.
// Rows of other are behind those of x.
struct Params {
  rows: u32, // of both
  width: u32, // elements
  eps: f32,
  first: u32, // elements of x; the others are of other
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> weight: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(3) var<storage, read> other: array<f32>;
@group(0) @binding(4) var<storage, read> other_weight: array<f32>;
@group(0) @binding(5) var<storage, read_write> other_y: array<f32>;
@group(0) @binding(6) var<uniform> params: Params;

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

// Element e of x and other, one behind the other.
fn element(e: u32) -> f32 {
  let of_x = params.first;
  if (e < of_x) {
    return x[e];
  }
  return other[e - of_x];
}

// v is element e by the scale of its row, of which it is element i.
fn put(e: u32, i: u32, v: f32) {
  let of_x = params.first;
  if (e < of_x) {
    y[e] = v * weight[i];
  } else {
    other_y[e - of_x] = v * other_weight[i];
  }
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32) {
  let row = flat_group(wid, groups);
  // A row that is not there has no elements; its lanes still meet the others at the barriers.
  let width = select(0u, params.width / 1u, row < params.rows);
  let base = row * width;
  var squares = 0.0;
  for (var i = lane; i < width; i += 64u) {
    let v = element(base + i);
    squares += v * v;
  }
  let scale = inverseSqrt(reduce_sum(lane, squares) / f32(params.width) + params.eps);
  for (var i = lane; i < width; i += 64u) {
    put(base + i, i, element(base + i) * scale);
  }
}
