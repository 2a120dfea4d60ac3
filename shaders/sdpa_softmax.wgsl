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

{{template "flat_group" .}}
{{template "partial" .}}
{{template "reduce_max" .}}
{{template "reduce_sum" .}}
@compute @workgroup_size({{.Lanes}})
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
  for (var c = begin + lane; c < end; c += {{.Lanes}}u) {
    let s = scores[at + c];
    let m = max(largest, s);
    sum = sum * exp(largest - m) + exp(s - m);
    largest = m;
  }
  let m = reduce_max(lane, largest);
  let total = reduce_sum(lane, sum * exp(largest - m));
  for (var c = begin + lane; c < end; c += {{.Lanes}}u) {
    scores[at + c] = exp(scores[at + c] - m) / total;
  }
}
