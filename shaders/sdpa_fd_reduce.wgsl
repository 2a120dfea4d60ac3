// Puts the splits of sdpa_fd_split together: y = sum of w o / sum of w l, with w = exp(m - the largest m). A
// workgroup takes a head.
{{- $parts := div .Lanes .HeadQuads}}
struct Params {
  q_heads: u32,
  splits: u32,
}

@group(0) @binding(0) var<storage, read> part_o: array<vec4<f32>>; // [q_heads, splits, {{.HeadQuads}}]
@group(0) @binding(1) var<storage, read> part_ml: array<vec2<f32>>; // [q_heads, splits]: max, sum
@group(0) @binding(2) var<storage, read_write> y: array<vec4<f32>>; // [q_heads, {{.HeadQuads}}]
@group(0) @binding(3) var<uniform> params: Params;

{{template "flat_group" .}}
{{template "partial" .}}
{{template "reduce_max" .}}
{{template "reduce_sum" .}}
var<workgroup> weight: array<f32, {{.MaxSplits}}>;
var<workgroup> sums: array<vec4<f32>, {{.Lanes}}>;

@compute @workgroup_size({{.Lanes}})
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32) {
  let head = flat_group(wid, groups);
  if (head >= params.q_heads) {
    return; // a grid that is larger than the live shape needs
  }
  let first = head * params.splits;
  var largest = -1e30;
  for (var i = lane; i < params.splits; i += {{.Lanes}}u) {
    largest = max(largest, part_ml[first + i].x);
  }
  let m = reduce_max(lane, largest);
  var sum = 0.0;
  for (var i = lane; i < params.splits; i += {{.Lanes}}u) {
    let ml = part_ml[first + i];
    let w = exp(ml.x - m);
    weight[i] = w;
    sum += w * ml.y;
  }
  let total = reduce_sum(lane, sum);
  let column = lane % {{.HeadQuads}}u;
  let part = lane / {{.HeadQuads}}u;
  var o = vec4<f32>(0.0);
  if (part < {{$parts}}u) {
    for (var i = part; i < params.splits; i += {{$parts}}u) {
      o += weight[i] * part_o[(first + i) * {{.HeadQuads}}u + column];
    }
  }
  sums[lane] = o;
  workgroupBarrier();
  if (part > 0u) {
    return;
  }
{{- if gt $parts 1}}
  for (var p = 1u; p < {{$parts}}u; p++) {
    o += sums[p * {{.HeadQuads}}u + column];
  }
{{- end}}
  y[head * {{.HeadQuads}}u + column] = o / total;
}
