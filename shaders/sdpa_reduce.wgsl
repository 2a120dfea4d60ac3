// Puts the splits of sdpa_split together: y[h] = sum of exp(m_i - m) * o_i / sum of exp(m_i - m) * l_i, with m the largest m_i. A workgroup takes a head.
struct Params {
  splits: u32,
}

@group(0) @binding(0) var<storage, read> part_o: array<f32>; // [{{.Heads}}, splits, {{.D}}]
@group(0) @binding(1) var<storage, read> part_ml: array<vec2<f32>>; // [{{.Heads}}, splits]
@group(0) @binding(2) var<storage, read_write> y: array<f32>; // [1, {{.Heads}}, {{.D}}]
@group(0) @binding(3) var<uniform> params: Params;

var<workgroup> weights: array<f32, {{.MaxSplits}}>;
{{template "flat_group" .}}
{{template "partial" .}}
{{template "reduce_sum" .}}
{{template "reduce_max" .}}
@compute @workgroup_size({{.Lanes}})
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let head = flat_group(wid, groups);
  let splits = select(0u, params.splits, head < {{.Heads}}u);
  let first = head * params.splits;
  var largest = -1e30;
  for (var i = lane; i < splits; i += {{.Lanes}}u) {
    largest = max(largest, part_ml[first + i].x);
  }
  largest = reduce_max(lane, largest);
  var sum = 0.0;
  for (var i = lane; i < splits; i += {{.Lanes}}u) {
    let ml = part_ml[first + i];
    let weight = exp(ml.x - largest);
    weights[i] = weight;
    sum += weight * ml.y;
  }
  let inverse = 1.0 / max(reduce_sum(lane, sum), 1e-30); // its barriers also publish weights
  if (splits > 0u) {
    for (var d = lane; d < {{.D}}u; d += {{.Lanes}}u) {
      var acc = 0.0;
      for (var i = 0u; i < splits; i++) {
        acc += weights[i] * part_o[(first + i) * {{.D}}u + d];
      }
      y[head * {{.D}}u + d] = acc * inverse;
    }
  }
}
