// reduce_rows with Lanes 128, Op sum, Vec 4: workgroup [128 1 1], 512 bytes of workgroup memory
// binding 0: x
// binding 1: y (written)
// param at 0: u32 rows
// param at 4: u32 width
// param at 8: f32 factor

// y = factor * sum of a row. A workgroup takes one.
struct Params {
  rows: u32,
  width: u32, // elements
  factor: f32,
}

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> params: Params;

// The index of a workgroup in a grid of one dimension that may have been folded into two.
fn flat_group(wid: vec3<u32>, groups: vec3<u32>) -> u32 {
  return wid.x + wid.y * groups.x;
}

var<workgroup> partial: array<f32, 128>;

fn join(u: f32, v: f32) -> f32 {
  return u + v;
}

// What join makes of v over the workgroup's lanes, for each lane. Every lane must call it.
fn reduce_join(lane: u32, v: f32) -> f32 {
  partial[lane] = v;
  workgroupBarrier();
  for (var s = 64u; s > 0u; s >>= 1u) {
    if (lane < s) {
      partial[lane] = join(partial[lane], partial[lane + s]);
    }
    workgroupBarrier();
  }
  return partial[0];
}

@compute @workgroup_size(128)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32) {
  let row = flat_group(wid, groups);
  // A row that is not there has no elements; its lanes still meet the others at the barriers.
  let width = select(0u, params.width / 4u, row < params.rows);
  var joined = 0.0;
  for (var i = lane; i < width; i += 128u) {
    let v = x[row * width + i];
    joined = join(joined, join(join(v.x, v.y), join(v.z, v.w)));
  }
  let total = reduce_join(lane, joined);
  if (lane == 0u && row < params.rows) {
    y[row] = total * params.factor;
  }
}
