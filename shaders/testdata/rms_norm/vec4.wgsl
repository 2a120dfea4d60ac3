// rms_norm/vec4: Lanes 128, Vec 4
// workgroup [128 1 1], 512 bytes of workgroup memory
// bindings: x, weight, y (written)
// params: u32 rows, u32 width, f32 eps

// A workgroup normalizes a row: y = x * inverseSqrt(mean(x^2) + eps) * weight.
struct Params {
  rows: u32,
  width: u32, // elements
  eps: f32,
}

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> weight: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> y: array<vec4<f32>>;
@group(0) @binding(3) var<uniform> params: Params;

// Returns the index of a workgroup in a one-dimensional grid, which can be dispatched in two dimensions.
fn flat_group(wid: vec3<u32>, groups: vec3<u32>) -> u32 {
  return wid.x + wid.y * groups.x;
}

var<workgroup> partial: array<f32, 128>;

// Returns, to every lane, the sum of v over all lanes of the workgroup. Every lane must call this function.
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
  // A row past the end has no elements, but its lanes must take part in the barriers.
  let width = select(0u, params.width / 4u, row < params.rows);
  let base = row * width;
  var squares = 0.0;
  for (var i = lane; i < width; i += 128u) {
    let v = x[base + i];
    squares += dot(v, v);
  }
  let scale = inverseSqrt(reduce_sum(lane, squares) / f32(params.width) + params.eps);
  for (var i = lane; i < width; i += 128u) {
    y[base + i] = x[base + i] * scale * weight[i];
  }
}
