// rms_norm with Each 8, Lanes 128, Residual, Vec 4: workgroup [128 1 1], 512 bytes of workgroup memory
// binding 0: x
// binding 1: weight
// binding 2: y (written)
// binding 3: residual
// binding 4: next_weight
// binding 5: weighted (written)
// binding 6: next_squares (written)
// param at 0: u32 rows
// param at 4: u32 width
// param at 8: f32 eps
// param at 12: u32 skip
// param at 16: u32 x_rows
// param at 20: u32 residual_rows

// A workgroup normalises a row: y = x * inverseSqrt(mean(x^2) + eps) * weight + residual.
struct Params {
  rows: u32,
  width: u32, // elements
  eps: f32,
  skip: u32, // the row of x and of residual that row 0 of y is made of
  x_rows: u32, // as many as residual has, or one that serves all
  residual_rows: u32, // likewise
}

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> weight: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> y: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> residual: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> next_weight: array<vec4<f32>>; // of a norm of y, which has one row
@group(0) @binding(5) var<storage, read_write> weighted: array<vec4<f32>>; // y by these
@group(0) @binding(6) var<storage, read_write> next_squares: array<f32>; // sums of those of y, of 8 columns
@group(0) @binding(7) var<uniform> params: Params;

// The index of a workgroup in a grid of one dimension that may have been folded into two.
fn flat_group(wid: vec3<u32>, groups: vec3<u32>) -> u32 {
  return wid.x + wid.y * groups.x;
}

fn spread(four: u32, chunks: u32) -> u32 {
  return four % 8u * chunks + four / 8u;
}

var<workgroup> partial: array<f32, 128>;

// The sum of v over the workgroup's lanes, for each lane. Every lane must call it.
fn reduce_sum(lane: u32, v: f32) -> f32 {
  partial[lane] = v;
  workgroupBarrier();
  for (var s = 64u; s > 0u; s >>= 1u) {
    if (lane < s) {
      partial[lane] += partial[lane + s];
    }
    workgroupBarrier();
  }
  let total = partial[0];
  workgroupBarrier();
  return total;
}

@compute @workgroup_size(128)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32) {
  let row = flat_group(wid, groups);
  // A row that is not there has no elements; its lanes still meet the others at the barriers.
  let width = select(0u, params.width / 4u, row < params.rows);
  let base = row * width;
  let x_base = min(params.skip + row, params.x_rows - 1u) * width;
  let residual_base = min(params.skip + row, params.residual_rows - 1u) * width;
  var squares = 0.0;
  for (var i = lane; i < width; i += 128u) {
    let v = x[x_base + i];
    squares += dot(v, v);
  }
  let scale = inverseSqrt(reduce_sum(lane, squares) / f32(params.width) + params.eps);
  for (var s = lane; s * 2u < width; s += 128u) {
    var sum = 0.0;
    for (var i = s * 2u; i < min((s + 1u) * 2u, width); i++) {
      let v = x[x_base + i] * scale * weight[i] + residual[residual_base + i];
      y[base + i] = v;
      weighted[spread(i, params.width / 32u)] = v * next_weight[i];
      sum += dot(v, v);
    }
    next_squares[s] = sum;
  }
}
