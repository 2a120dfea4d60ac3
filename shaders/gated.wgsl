// y = {{.Act}}(gate) * up. An invocation computes {{.Vec}} elements.
{{- $T := "f32"}}{{if eq .Vec 4}}{{$T = "vec4<f32>"}}{{end}}
struct Params {
  n: u32, // invocations
}

@group(0) @binding(0) var<storage, read> gate: array<{{$T}}>;
@group(0) @binding(1) var<storage, read> up: array<{{$T}}>;
@group(0) @binding(2) var<storage, read_write> y: array<{{$T}}>;
@group(0) @binding(3) var<uniform> params: Params;

{{template "flat_thread" .}}
@compute @workgroup_size({{.Lanes}})
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  let i = flat_thread(gid, groups);
  if (i >= params.n) {
    return;
  }
  let v = gate[i];
  y[i] = ({{.Expr}}) * up[i];
}
