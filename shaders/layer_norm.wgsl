// A workgroup normalizes a row: y = (x - mean) * inverseSqrt(variance + eps) * weight + bias. The variance is
// computed from differences to the mean, which is precise even if the mean is large.
{{- $T := "f32"}}{{if eq .Vec 4}}{{$T = "vec4<f32>"}}{{end}}
struct Params {
  rows: u32,
  width: u32, // elements
  eps: f32,
}

@group(0) @binding(0) var<storage, read> x: array<{{$T}}>;
@group(0) @binding(1) var<storage, read> weight: array<{{$T}}>;
@group(0) @binding(2) var<storage, read> bias: array<{{$T}}>;
@group(0) @binding(3) var<storage, read_write> y: array<{{$T}}>;
@group(0) @binding(4) var<uniform> params: Params;

{{template "flat_group" .}}
{{template "partial" .}}
{{template "reduce_sum" .}}
@compute @workgroup_size({{.Lanes}})
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32) {
  let row = flat_group(wid, groups);
  // A row past the end has no elements, but its lanes must take part in the barriers.
  let width = select(0u, params.width / {{.Vec}}u, row < params.rows);
  let base = row * width;
  var sum = 0.0;
  for (var i = lane; i < width; i += {{.Lanes}}u) {
    sum += {{if eq .Vec 4}}dot(x[base + i], vec4<f32>(1.0)){{else}}x[base + i]{{end}};
  }
  let mean = reduce_sum(lane, sum) / f32(params.width);
  var squares = 0.0;
  for (var i = lane; i < width; i += {{.Lanes}}u) {
    let v = x[base + i] - mean;
    squares += {{if eq .Vec 4}}dot(v, v){{else}}v * v{{end}};
  }
  let scale = inverseSqrt(reduce_sum(lane, squares) / f32(params.width) + params.eps);
  for (var i = lane; i < width; i += {{.Lanes}}u) {
    y[base + i] = (x[base + i] - mean) * scale * weight[i] + bias[i];
  }
}
