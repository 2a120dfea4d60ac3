// y = sum of all splits of a product + bias{{if .Residual}} + residual{{end}}. An invocation computes
// {{if eq .Vec 4}}4 columns of a row{{else}}an element{{end}}.
{{- $T := "f32"}}{{if eq .Vec 4}}{{$T = "vec4<f32>"}}{{end}}
struct Params {
  n: u32, // invocations
  width: u32, // invocations for a row
  splits: u32,
{{- if .Residual}}
  residual_rows: u32, // as many rows as y, or a single row that is used for all rows of y
{{- end}}
}

{{binding}} var<storage, read> sums: array<{{$T}}>; // [splits, rows, width]
{{- if .Bias}}
{{binding}} var<storage, read> bias: array<{{$T}}>;
{{- end}}
{{- if .Residual}}
{{binding}} var<storage, read> residual: array<{{$T}}>;
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
  var sum = sums[i];
  for (var split = 1u; split < params.splits; split++) {
    sum += sums[split * params.n + i];
  }
  y[i] = sum
    {{- if .Bias}} + bias[i % params.width]{{end}}
    {{- if .Residual}} + residual[min(i / params.width, params.residual_rows - 1u) * params.width +
    i % params.width]{{end}};
}
