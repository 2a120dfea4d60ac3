// Computes the scale and the zero point that map the elements of a row to integers. A workgroup processes a
// row.
struct Params {
  rows: u32,
  width: u32, // elements of a row
  quant_min: f32,
  quant_max: f32,
  eps: f32, // the smallest scale
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> scale: array<f32>;
@group(0) @binding(2) var<storage, read_write> zero_point: array<f32>;
@group(0) @binding(3) var<uniform> params: Params;

{{template "flat_group" .}}
{{template "partial" .}}
{{template "reduce_max" .}}
@compute @workgroup_size({{.Lanes}})
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32) {
  let row = flat_group(wid, groups);
  // A row past the end has no elements, but its lanes must take part in the barriers.
  let width = select(0u, params.width, row < params.rows);
  var above = 0.0; // the range of the row always includes 0
  var below = 0.0;
  for (var i = lane; i < width; i += {{.Lanes}}u) {
    let v = x[row * width + i];
    above = max(above, v);
    below = max(below, -v);
  }
  above = reduce_max(lane, above);
  below = reduce_max(lane, below);
  if (lane == 0u && row < params.rows) {
    let s = max((above + below) / (params.quant_max - params.quant_min), params.eps);
    scale[row] = s;
    zero_point[row] = clamp(params.quant_min + round(below / s), params.quant_min, params.quant_max);
  }
}
