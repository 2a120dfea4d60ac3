// y = x with another element type. An invocation converts one element.
struct Params {
  n: u32, // elements
}
{{if .ToFloat}}
@group(0) @binding(0) var<storage, read> x: array<i32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
{{- else}}
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<i32>;
{{- end}}
@group(0) @binding(2) var<uniform> params: Params;

fn element(i: u32) {
{{- if .ToFloat}}
  y[i] = f32(x[i]);
{{- else}}
  // 2147483520 is the largest f32 that fits an i32.
  y[i] = i32(clamp(trunc(x[i]), -2147483648.0, 2147483520.0));
{{- end}}
}
{{template "each_element" .}}
