// A workgroup normalizes a row of {{.Width}} elements, and multiplies it by weights and by silu of a gate.
{{- $T := "f32"}}{{if eq .Vec 4}}{{$T = "vec4<f32>"}}{{end}}
struct Params {
  rows: u32,
}

{{binding}} var<storage, read> x: array<{{$T}}>;
{{binding}} var<storage, read> gate: array<{{$T}}>;
{{binding}} var<storage, read> weight: array<{{$T}}>;
{{binding}} var<storage, read_write> y: array<{{$T}}>;
{{binding}} var<uniform> params: Params;

const eps = {{.Eps}}f;
{{template "flat_group" .}}
{{template "partial" .}}
{{template "reduce_sum" .}}
@compute @workgroup_size({{.Lanes}})
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32) {
  let row = flat_group(wid, groups);
  // A row past the end has no elements, but its lanes must take part in the barriers.
  let width = select(0u, {{div .Width .Vec}}u, row < params.rows);
  let base = row * {{div .Width .Vec}}u;
  var squares = 0.0;
  for (var i = lane; i < width; i += {{.Lanes}}u) {
    let v = x[base + i];
    squares += {{if eq .Vec 4}}dot(v, v){{else}}v * v{{end}};
  }
  let scale = inverseSqrt(reduce_sum(lane, squares) / {{.Width}}.0 + eps);
  for (var i = lane; i < width; i += {{.Lanes}}u) {
    let g = gate[base + i];
    y[base + i] = x[base + i] * scale * weight[i] * (g / (1.0 + exp(-g)));
  }
}
