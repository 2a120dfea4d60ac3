// sdpa_fd_reduce with HeadQuads 16, Lanes 64, Leaves 64: workgroup [64 1 1], 1056 bytes of workgroup memory
// binding 0: parts
// binding 1: y (written)
// param at 0: u32 rows
// param at 4: u32 splits

// Puts the splits of sdpa_fd_split, or of sdpa_streaming, together: y = sum of w o / sum of w l, with w =
// exp(m - the largest m). A workgroup takes a row, a head of a token; of its lanes each takes four columns of
// every few splits.
struct Params {
  rows: u32,
  splits: u32,
}

// [splits, rows, 16 of o, then m and l]
@group(0) @binding(0) var<storage, read> parts: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> y: array<vec4<f32>>; // [rows, 16], spread
@group(0) @binding(2) var<uniform> params: Params;

// The index of a workgroup in a grid of one dimension that may have been folded into two.
fn flat_group(wid: vec3<u32>, groups: vec3<u32>) -> u32 {
  return wid.x + wid.y * groups.x;
}

fn spread(four: u32, chunks: u32) -> u32 {
  return four % 8u * chunks + four / 8u;
}

var<workgroup> sums: array<vec4<f32>, 64>;
var<workgroup> largests: array<vec2<f32>, 4>; // and the sum of weights

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32) {
  let row = flat_group(wid, groups);
  if (row >= params.rows) {
    return; // a grid that is larger than the live shape needs
  }
  let column = lane % 16u;
  let part = lane / 16u;
  var largest = -1e30;
  var total = 0.0;
  var o = vec4<f32>(0.0);
  if (part < 4u) {
    for (var i = part; i < params.splits; i += 4u) {
      let at = (i * params.rows + row) * 17u;
      let ml = parts[at + 16u];
      let part_o = parts[at + column];
      let before = largest;
      largest = max(before, ml.x);
      let shrink = exp(before - largest);
      let weight = exp(ml.x - largest);
      total = fma(total, shrink, weight * ml.y);
      o = fma(o, vec4<f32>(shrink), weight * part_o);
    }
    sums[lane] = o;
    if (column == 0u) {
      largests[part] = vec2<f32>(largest, total);
    }
  }
  workgroupBarrier();
  if (part > 0u) {
    return;
  }
  for (var p = 1u; p < 4u; p++) {
    let before = largest;
    largest = max(before, largests[p].x);
    let shrink = exp(before - largest);
    let weight = exp(largests[p].x - largest);
    total = fma(total, shrink, weight * largests[p].y);
    o = fma(o, vec4<f32>(shrink), weight * sums[p * 16u + column]);
  }
  let at = row * 16u + column;
  y[spread(at, 64u)] = o / total;
}
