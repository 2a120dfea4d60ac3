// y = {{.Op}}(x). An invocation computes {{.Vec}} elements.
{{- $T := "f32"}}{{if eq .Vec 4}}{{$T = "vec4<f32>"}}{{end}}
struct Params {
  n: u32, // invocations
}

@group(0) @binding(0) var<storage, read> x: array<{{$T}}>;
@group(0) @binding(1) var<storage, read_write> y: array<{{$T}}>;
@group(0) @binding(2) var<uniform> params: Params;
{{if eq .Op "gelu"}}
// Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26: off by 1.5e-7 at most.
fn erf(v: {{$T}}) -> {{$T}} {
  let t = 1.0 / (1.0 + 0.3275911 * abs(v));
  let poly = t * (0.254829592 +
    t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
  return sign(v) * (1.0 - poly * exp(-v * v));
}
{{end}}
{{template "flat_thread" .}}
@compute @workgroup_size({{.Lanes}})
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  let i = flat_thread(gid, groups);
  if (i >= params.n) {
    return;
  }
  let v = x[i];
{{- if eq .Op "sigmoid"}}
  y[i] = 1.0 / (1.0 + exp(-v));
{{- else if eq .Op "silu"}}
  y[i] = v / (1.0 + exp(-v));
{{- else if eq .Op "gelu"}}
  y[i] = 0.5 * v * (1.0 + erf(v * 0.70710678118654752));
{{- else if eq .Op "gelu_tanh"}}
  // tanh(u) = 1 - 2 / (exp(2 u) + 1), with u kept where exp does not overflow.
  let u = clamp(0.79788456080286536 * (v + 0.044715 * v * v * v), {{$T}}(-20.0), {{$T}}(20.0));
  y[i] = 0.5 * v * (2.0 - 2.0 / (exp(2.0 * u) + 1.0));
{{- end}}
}
