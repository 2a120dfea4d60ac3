// The position of each pixel of an image: its column, then its row. An invocation computes one number.
struct Params {
  n: u32, // numbers
  width: u32, // of the image
  stride: f32,
  offset: f32,
}

{{binding}} var<storage, read_write> y: array<f32>;
{{binding}} var<uniform> params: Params;

fn element(i: u32) {
  let pixel = i / 2u;
  let at = select(pixel / params.width, pixel % params.width, i % 2u == 0u);
  y[i] = (f32(at) + params.offset) * params.stride;
}
{{template "each_element" .}}
