// kernel sdpa_softmax_lanes256, workgroup [256 1 1], 1024 bytes of workgroup memory
// binding 0: scores (written)
// param at 0: u32 rows
// param at 4: u32 tokens
// param at 8: u32 context
// param at 12: u32 position

// Softmax of the scores of a row of attention, in place: over the positions that the row may see, c <= position + s. The rest become 0, up to the end
// of what sdpa_av reads: the last position that a row of the same tile of 64 sees. A workgroup takes a row, and reads it twice.
struct Params {
  rows: u32, // heads * S
  tokens: u32, // S
  context: u32,
  position: u32,
}

@group(0) @binding(0) var<storage, read_write> scores: array<f32>; // [heads, S, context]
@group(0) @binding(1) var<uniform> params: Params;

// The index of a workgroup in a grid of one dimension that may have been folded into two.
fn flat_group(wid: vec3<u32>, groups: vec3<u32>) -> u32 {
  return wid.x + wid.y * groups.x;
}

var<workgroup> partial: array<f32, 256>;

// The sum of v over the workgroup's lanes, for each lane. Every lane must call it.
fn reduce_sum(lane: u32, v: f32) -> f32 {
  partial[lane] = v;
  workgroupBarrier();
  for (var s = 128u; s > 0u; s >>= 1u) {
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
  for (var s = 128u; s > 0u; s >>= 1u) {
    if (lane < s) {
      partial[lane] = max(partial[lane], partial[lane + s]);
    }
    workgroupBarrier();
  }
  let largest = partial[0];
  workgroupBarrier();
  return largest;
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row = flat_group(wid, groups);
  // A row that is not there has no positions; its lanes still meet the others at the barriers.
  let there = row < params.rows;
  let s = row % params.tokens;
  let seen = select(0u, params.position + s + 1u, there);
  let end = select(0u, min(params.context, params.position + (s / 64u + 1u) * 64u), there);
  let base = row * params.context;
  var largest = -1e30;
  var sum = 0.0;
  for (var c = lane; c < seen; c += 256u) {
    let v = scores[base + c];
    let m = max(largest, v);
    sum = sum * exp(largest - m) + exp(v - m);
    largest = m;
  }
  let row_largest = reduce_max(lane, largest);
  let inverse = 1.0 / max(reduce_sum(lane, sum * exp(largest - row_largest)), 1e-30);
  for (var c = lane; c < end; c += 256u) {
    if (c < seen) {
      scores[base + c] = exp(scores[base + c] - row_largest) * inverse;
    } else {
      scores[base + c] = 0.0;
    }
  }
}
