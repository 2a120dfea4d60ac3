// y = factor * sum of a row. A workgroup sums one.
{{- $T := "f32"}}{{if eq .Vec 4}}{{$T = "vec4<f32>"}}{{end}}
struct Params {
  rows: u32,
  width: u32, // elements
  factor: f32,
}

@group(0) @binding(0) var<storage, read> x: array<{{$T}}>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> params: Params;

{{template "flat_group" .}}
{{template "partial" .}}
{{template "reduce_sum" .}}
@compute @workgroup_size({{.Lanes}})
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32) {
  let row = flat_group(wid, groups);
  // A row that is not there has no elements; its lanes still meet the others at the barriers.
  let width = select(0u, params.width / {{.Vec}}u, row < params.rows);
  var sum = 0.0;
  for (var i = lane; i < width; i += {{.Lanes}}u) {
    sum += {{if eq .Vec 4}}dot(x[row * width + i], vec4<f32>(1.0)){{else}}x[row * width + i]{{end}};
  }
  let total = reduce_sum(lane, sum);
  if (lane == 0u && row < params.rows) {
    y[row] = total * params.factor;
  }
}
