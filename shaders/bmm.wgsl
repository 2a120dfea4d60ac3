// y = scale * a * b for each matrix of a batch{{if .Transposed}}, with the transpose of b{{end}}. A workgroup
// computes a tile of {{.Tile}} x {{.Tile}} results, and each invocation computes one of them.
struct Params {
  m: u32, // rows of a and of y
  n: u32, // columns of y
  k: u32, // columns of a
  batch: u32,
  scale: f32,
}

@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(3) var<uniform> params: Params;

var<workgroup> tile_a: array<f32, {{mul .Tile .Tile}}>; // by row, then by column of a
var<workgroup> tile_b: array<f32, {{mul .Tile .Tile}}>; // by column of a, then by column of y

@compute @workgroup_size({{.Tile}}, {{.Tile}})
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_id) lid: vec3<u32>) {
  if (wid.z >= params.batch) { // the grid can be larger than the current batch
    return;
  }
  let row = wid.y * {{.Tile}}u + lid.y;
  let column = wid.x * {{.Tile}}u + lid.x;
  let a_row = (wid.z * params.m + row) * params.k;
  let b_matrix = wid.z * params.k * params.n;
  var sum = 0.0;
  for (var first = 0u; first < params.k; first += {{.Tile}}u) {
    var v = 0.0; // elements past the end count as 0
    if (row < params.m && first + lid.x < params.k) {
      v = a[a_row + first + lid.x];
    }
    tile_a[lid.y * {{.Tile}}u + lid.x] = v;
    v = 0.0;
{{- if .Transposed}}
    let b_row = wid.x * {{.Tile}}u + lid.y;
    if (b_row < params.n && first + lid.x < params.k) {
      v = b[b_matrix + b_row * params.k + first + lid.x];
    }
    tile_b[lid.x * {{.Tile}}u + lid.y] = v;
{{- else}}
    if (first + lid.y < params.k && column < params.n) {
      v = b[b_matrix + (first + lid.y) * params.n + column];
    }
    tile_b[lid.y * {{.Tile}}u + lid.x] = v;
{{- end}}
    workgroupBarrier();
    for (var j = 0u; j < {{.Tile}}u; j++) {
      sum += tile_a[lid.y * {{.Tile}}u + j] * tile_b[j * {{.Tile}}u + lid.x];
    }
    workgroupBarrier();
  }
  if (row < params.m && column < params.n) {
    y[(wid.z * params.m + row) * params.n + column] = params.scale * sum;
  }
}
