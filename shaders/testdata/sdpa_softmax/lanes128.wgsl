// sdpa_softmax with Lanes 128: workgroup [128 1 1], 512 bytes of workgroup memory
// binding 0: scores (read and written)
// param at 0: u32 rows
// param at 4: u32 tokens
// param at 8: u32 position
// param at 12: u32 start
// param at 16: u32 window
// param at 20: u32 stride

// Softmax in place over the positions that a token may see. A workgroup takes a row: one token of one head.
struct Params {
  rows: u32,
  tokens: u32, // rows of a head
  position: u32, // of the first token
  start: u32, // the first position that it sees, which has the first score of each row
  window: u32, // positions that a token sees at most
  stride: u32, // of a row
}

@group(0) @binding(0) var<storage, read_write> scores: array<f32>;
@group(0) @binding(1) var<uniform> params: Params;

// The index of a workgroup in a grid of one dimension that may have been folded into two.
fn flat_group(wid: vec3<u32>, groups: vec3<u32>) -> u32 {
  return wid.x + wid.y * groups.x;
}

var<workgroup> partial: array<f32, 128>;

// The largest v over the workgroup's lanes, for each lane. Every lane must call it.
fn reduce_max(lane: u32, v: f32) -> f32 {
  partial[lane] = v;
  workgroupBarrier();
  for (var s = 64u; s > 0u; s >>= 1u) {
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
  if (row >= params.rows) {
    return;
  }
  let at = row * params.stride;
  // Its scores are those from begin to end.
  let end = params.position + row % params.tokens + 1u - params.start;
  let begin = max(end, params.window) - params.window;
  // One pass for both: what is summed so far is scaled when a larger score comes.
  var largest = -1e30;
  var sum = 0.0;
  for (var c = begin + lane; c < end; c += 128u) {
    let s = scores[at + c];
    let m = max(largest, s);
    sum = sum * exp(largest - m) + exp(s - m);
    largest = m;
  }
  let m = reduce_max(lane, largest);
  let total = reduce_sum(lane, sum * exp(largest - m));
  for (var c = begin + lane; c < end; c += 128u) {
    scores[at + c] = exp(scores[at + c] - m) / total;
  }
}
