// Rounds the elements of x to integers, with the scale and the zero point of their row, and subtracts the
// zero point. An invocation computes one element.
struct Params {
  n: u32, // elements
  width: u32, // elements of a row
  quant_min: f32,
  quant_max: f32,
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> scale: array<f32>;
@group(0) @binding(2) var<storage, read> zero_point: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
@group(0) @binding(4) var<uniform> params: Params;

{{template "flat_thread" .}}
@compute @workgroup_size({{.Lanes}})
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  let i = flat_thread(gid, groups);
  if (i >= params.n) {
    return;
  }
  let row = i / params.width;
  let zero = zero_point[row];
  y[i] = clamp(round(x[i] / scale[row]) + zero, params.quant_min, params.quant_max) - zero;
}
