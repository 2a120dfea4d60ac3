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

{{template "flat_group" .}}
{{template "partial" .}}
{{template "reduce_sum" .}}
{{template "reduce_max" .}}
@compute @workgroup_size({{.Lanes}})
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
  for (var c = lane; c < seen; c += {{.Lanes}}u) {
    let v = scores[base + c];
    let m = max(largest, v);
    sum = sum * exp(largest - m) + exp(v - m);
    largest = m;
  }
  let row_largest = reduce_max(lane, largest);
  let inverse = 1.0 / max(reduce_sum(lane, sum * exp(largest - row_largest)), 1e-30);
  for (var c = lane; c < end; c += {{.Lanes}}u) {
    if (c < seen) {
      scores[base + c] = exp(scores[base + c] - row_largest) * inverse;
    } else {
      scores[base + c] = 0.0;
    }
  }
}
