// y[block, column] = factor * {{.Op}} of x[block, row, column] over the rows. An invocation reduces
// {{if eq .Vec 4}}4 columns{{else}}a column{{end}}.
{{- $T := "f32"}}{{if eq .Vec 4}}{{$T = "vec4<f32>"}}{{end}}
struct Params {
  n: u32, // invocations
  rows: u32, // rows of a block
  width: u32, // invocations for a row
  factor: f32,
}

@group(0) @binding(0) var<storage, read> x: array<{{$T}}>;
@group(0) @binding(1) var<storage, read_write> y: array<{{$T}}>;
@group(0) @binding(2) var<uniform> params: Params;

{{.Needs}}
fn join(u: {{$T}}, v: {{$T}}) -> {{$T}} {
  return {{.Join}};
}
{{template "flat_thread" .}}
@compute @workgroup_size({{.Lanes}})
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  let i = flat_thread(gid, groups);
  if (i >= params.n) {
    return;
  }
  let first = i / params.width * params.rows * params.width + i % params.width;
  var joined = {{$T}}({{.Start}});
  for (var r = 0u; r < params.rows; r++) {
    joined = join(joined, x[first + r * params.width]);
  }
  y[i] = joined * params.factor;
}
