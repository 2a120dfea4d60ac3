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

fn element(i: u32) {
  let row = i / params.width;
  let zero = zero_point[row];
  y[i] = clamp(round(x[i] / scale[row]) + zero, params.quant_min, params.quant_max) - zero;
}
{{template "each_element" .}}
