// Combines the splits of sdpa_fd_split or of sdpa_streaming. A split consists of the weighted sums o, the
// largest score m, and the sum of weights l. y = sum of w o / sum of w l, where w = exp(m - the largest m). A
// workgroup computes a row, which is one head of a token. Each lane processes four columns of some of the
// splits.
{{- $parts := div .Lanes .HeadQuads}}
{{- $stride := add .HeadQuads 1}}
struct Params {
  rows: u32,
  splits: u32,
}

// [splits, rows, {{.HeadQuads}} vectors of o, then one with m and l]
@group(0) @binding(0) var<storage, read> parts: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> y: array<vec4<f32>>; // [rows, {{.HeadQuads}}]
{{- if .Leaves}}, interleaved{{end}}
@group(0) @binding(2) var<uniform> params: Params;

{{template "flat_group" .}}
{{- if .Leaves}}
{{- template "spread" .}}
{{end}}
var<workgroup> sums: array<vec4<f32>, {{.Lanes}}>;
var<workgroup> largests: array<vec2<f32>, {{$parts}}>; // largest score and sum of weights

@compute @workgroup_size({{.Lanes}})
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32) {
  let row = flat_group(wid, groups);
  if (row >= params.rows) {
    return; // the grid can be larger than the current shape needs
  }
  let column = lane % {{.HeadQuads}}u;
  let part = lane / {{.HeadQuads}}u;
  var largest = -1e30;
  var total = 0.0;
  var o = vec4<f32>(0.0);
  if (part < {{$parts}}u) {
    for (var i = part; i < params.splits; i += {{$parts}}u) {
      let at = (i * params.rows + row) * {{$stride}}u;
      let ml = parts[at + {{.HeadQuads}}u];
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
{{- if gt $parts 1}}
  for (var p = 1u; p < {{$parts}}u; p++) {
    let before = largest;
    largest = max(before, largests[p].x);
    let shrink = exp(before - largest);
    let weight = exp(largests[p].x - largest);
    total = fma(total, shrink, weight * largests[p].y);
    o = fma(o, vec4<f32>(shrink), weight * sums[p * {{.HeadQuads}}u + column]);
  }
{{- end}}
  let at = row * {{.HeadQuads}}u + column;
  y[{{if .Leaves}}spread(at, {{.Leaves}}u){{else}}at{{end}}] = o / total;
}
