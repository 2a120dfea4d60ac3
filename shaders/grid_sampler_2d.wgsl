// The pixels of x at the points of grid. An invocation computes one element of y.
struct Params {
  n: u32, // elements of y
  channels: u32,
  in_h: u32, // height of x
  in_w: u32,
  points: u32, // of an image
}

{{binding}} var<storage, read> x: array<f32>;
{{binding}} var<storage, read> grid: array<f32>;
{{binding}} var<storage, read_write> y: array<f32>;
{{binding}} var<uniform> params: Params;

// A position in pixels for a number v of grid, along an axis with n pixels.
fn place(v: f32, n: f32) -> f32 {
{{- if .Align}}
  var at = (v + 1.0) / 2.0 * (n - 1.0);
{{- else}}
  var at = ((v + 1.0) * n - 1.0) / 2.0;
{{- end}}
{{- if .Reflect}}
{{- if .Align}}
  let low = 0.0;
  let size = n - 1.0;
{{- else}}
  let low = -0.5;
  let size = n;
{{- end}}
  if (size == 0.0) {
    return 0.0;
  }
  at = abs(at - low);
  let turns = floor(at / size);
  at = at - turns * size;
  if (turns - 2.0 * floor(turns / 2.0) == 1.0) {
    at = size - at;
  }
  at += low;
{{- end}}
{{- if .Border}}
  at = clamp(at, 0.0, n - 1.0);
{{- end}}
  return at;
}

// A pixel of the plane that starts at first, or 0 outside of the plane.
fn pixel(first: u32, row: f32, col: f32) -> f32 {
  if (row >= 0.0 && row < f32(params.in_h) && col >= 0.0 && col < f32(params.in_w)) {
    return x[first + u32(row) * params.in_w + u32(col)];
  }
  return 0.0;
}

fn element(i: u32) {
  let plane = i / params.points;
  let point = 2u * (plane / params.channels * params.points + i % params.points);
  let first = plane * params.in_h * params.in_w;
  let col = place(grid[point], f32(params.in_w));
  let row = place(grid[point + 1u], f32(params.in_h));
{{- if .Nearest}}
  y[i] = pixel(first, round(row), round(col));
{{- else}}
  let left = floor(col);
  let top = floor(row);
  let across = col - left;
  let down = row - top;
  y[i] = pixel(first, top, left) * (1.0 - down) * (1.0 - across) +
    pixel(first, top, left + 1.0) * (1.0 - down) * across +
    pixel(first, top + 1.0, left) * down * (1.0 - across) +
    pixel(first, top + 1.0, left + 1.0) * down * across;
{{- end}}
}
{{template "each_element" .}}
