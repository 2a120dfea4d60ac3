// y = factor * {{.Op}} of a row. A workgroup reduces a row.
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
{{.Needs}}
fn join(u: f32, v: f32) -> f32 {
  return {{.Join}};
}
{{template "reduce_join" .}}
@compute @workgroup_size({{.Lanes}})
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32) {
  let row = flat_group(wid, groups);
  // A row past the end has no elements, but its lanes must take part in the barriers.
  let width = select(0u, params.width / {{.Vec}}u, row < params.rows);
  var joined = {{.Start}};
  for (var i = lane; i < width; i += {{.Lanes}}u) {
    let v = x[row * width + i];
    joined = join(joined, {{if eq .Vec 4}}join(join(v.x, v.y), join(v.z, v.w)){{else}}v{{end}});
  }
  let total = reduce_join(lane, joined);
  if (lane == 0u && row < params.rows) {
    y[row] = total * params.factor;
  }
}
