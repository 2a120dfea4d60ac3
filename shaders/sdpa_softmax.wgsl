// Computes softmax in place, over the positions that a token can see. A workgroup computes a row, which is
// one token of one head.
{{- if .Sinks}} The sink of the head is one more score of the row. Its weight is not stored.{{end}}
struct Params {
  rows: u32,
  tokens: u32, // rows of a head
  position: u32, // position of the first token
  start: u32, // first position that the first token sees; rows of scores start with it
  window: u32, // largest number of positions that a token sees
  stride: u32, // number of elements from one row of scores to the next
}

{{if .Sinks -}}
{{binding}} var<storage, read> sinks: array<f32>; // for each head, a score without a value
{{end -}}
{{binding}} var<storage, read_write> scores: array<f32>;
{{binding}} var<uniform> params: Params;

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
  // The scores of the row are from begin to end.
  let end = params.position + row % params.tokens + 1u - params.start;
  let begin = max(end, params.window) - params.window;
  // One pass finds the largest score and the sum: a larger score rescales the sum so far.
  var largest = -1e30;
  var sum = 0.0;
  for (var c = begin + lane; c < end; c += {{.Lanes}}u) {
    let s = scores[at + c];
    let m = max(largest, s);
    sum = sum * exp(largest - m) + exp(s - m);
    largest = m;
  }
{{- if .Sinks}}
  let sink = sinks[row / params.tokens];
  let m = max(reduce_max(lane, largest), sink);
  let total = reduce_sum(lane, sum * exp(largest - m)) + exp(sink - m);
{{- else}}
  let m = reduce_max(lane, largest);
  let total = reduce_sum(lane, sum * exp(largest - m));
{{- end}}
  for (var c = begin + lane; c < end; c += {{.Lanes}}u) {
    scores[at + c] = exp(scores[at + c] - m) / total;
  }
}
