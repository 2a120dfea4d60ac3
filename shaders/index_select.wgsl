// Copies rows of x to y. For each row of y, an index selects the row of x. An invocation copies one element.
struct Params {
  n: u32, // elements of y
  width: u32, // elements of a row
  indices: u32,
  rows: u32, // rows of a block of x
}

@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read> index: array<i32>;
@group(0) @binding(2) var<storage, read_write> y: array<u32>;
@group(0) @binding(3) var<uniform> params: Params;

fn element(i: u32) {
  let line = i / params.width;
  let block = line / params.indices;
  // An index outside x selects the first or the last row, so that no other memory is read.
  let row = u32(clamp(index[line % params.indices], 0, i32(params.rows) - 1));
  y[i] = x[(block * params.rows + row) * params.width + i % params.width];
}
{{template "each_element" .}}
