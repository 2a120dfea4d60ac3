// y = {{.Act}}(gate) * up. An invocation computes {{.Vec}} elements.
{{- if .Width}}
// Each row of x has a row of gate, followed by a row of up.
{{- end}}
{{- $T := "f32"}}{{if eq .Vec 4}}{{$T = "vec4<f32>"}}{{end}}
struct Params {
  n: u32, // invocations
}

{{if .Width -}}
{{binding}} var<storage, read> x: array<{{$T}}>;
{{- else -}}
{{binding}} var<storage, read> gate: array<{{$T}}>;
{{binding}} var<storage, read> up: array<{{$T}}>;
{{- end}}
{{binding}} var<storage, read_write> y: array<{{$T}}>;
{{binding}} var<uniform> params: Params;

{{template "flat_thread" .}}
@compute @workgroup_size({{.Lanes}})
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  let i = flat_thread(gid, groups);
  if (i >= params.n) {
    return;
  }
{{- if .Width}}
  let at = i + i / {{.Width}}u * {{.Width}}u;
  let v = x[at];
  y[i] = {{.Expr}};
{{- else}}
  let v = gate[i];
  y[i] = {{.Expr}};
{{- end}}
}
