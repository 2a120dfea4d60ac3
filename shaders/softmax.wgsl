// A workgroup computes a row: y = exp(x - max) / sum(exp(x - max)). Each lane keeps the maximum m so far, and
// the sum of exp(x - m) so far. The row is therefore read only twice, not three times (Milakov and
// Gimelshein, Online normalizer calculation for softmax, 2018).
{{- $T := "f32"}}{{if eq .Vec 4}}{{$T = "vec4<f32>"}}{{end}}
struct Params {
  rows: u32,
  width: u32, // elements
}

@group(0) @binding(0) var<storage, read> x: array<{{$T}}>;
@group(0) @binding(1) var<storage, read_write> y: array<{{$T}}>;
@group(0) @binding(2) var<uniform> params: Params;

{{template "flat_group" .}}
{{template "partial" .}}
{{template "reduce_sum" .}}
{{template "reduce_max" .}}
@compute @workgroup_size({{.Lanes}})
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32) {
  let row = flat_group(wid, groups);
  // A row past the end has no elements, but its lanes must take part in the barriers.
  let width = select(0u, params.width / {{.Vec}}u, row < params.rows);
  let base = row * width;
  var largest = -3.4028234e38;
  var sum = 0.0;
  for (var i = lane; i < width; i += {{.Lanes}}u) {
    let v = x[base + i];
{{- if eq .Vec 4}}
    let m = max(largest, max(max(v.x, v.y), max(v.z, v.w)));
    sum = sum * exp(largest - m) + dot(exp(v - m), vec4<f32>(1.0));
{{- else}}
    let m = max(largest, v);
    sum = sum * exp(largest - m) + exp(v - m);
{{- end}}
    largest = m;
  }
  let row_largest = reduce_max(lane, largest);
  let row_sum = reduce_sum(lane, sum * exp(largest - row_largest));
  for (var i = lane; i < width; i += {{.Lanes}}u) {
    y[base + i] = exp(x[base + i] - row_largest) / row_sum;
  }
}
