// Copies blocks of rows from one dense tensor to another. The distances between blocks, and between rows, can
// differ in the two tensors. All params count elements of {{.Vec}} words. An invocation copies an element.
{{- $T := "u32"}}{{if eq .Vec 4}}{{$T = "vec4<u32>"}}{{end}}
struct Params {
  n: u32, // elements
  width: u32, // elements of a row
  rows: u32, // rows of a block
  src_start: u32,
  src_block: u32,
  src_row: u32,
  dst_start: u32,
  dst_block: u32,
  dst_row: u32,
}

@group(0) @binding(0) var<storage, read> src: array<{{$T}}>;
@group(0) @binding(1) var<storage, read_write> dst: array<{{$T}}>;
@group(0) @binding(2) var<uniform> params: Params;

{{template "flat_thread" .}}
@compute @workgroup_size({{.Lanes}})
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  let i = flat_thread(gid, groups);
  if (i >= params.n) {
    return;
  }
  let column = i % params.width;
  let line = i / params.width;
  let row = line % params.rows;
  let block = line / params.rows;
  dst[params.dst_start + block * params.dst_block + row * params.dst_row + column] =
    src[params.src_start + block * params.src_block + row * params.src_row + column];
}
